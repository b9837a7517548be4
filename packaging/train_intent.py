"""Makes the weights of the intent model, and reports on it.

    python packaging/train_intent.py train --train FILE... [--chat FILE...] [--dev FILE]
    python packaging/train_intent.py report --data FILE [--json]
    python packaging/train_intent.py holdout --train FILE... [--chat FILE...]

Files hold one JSON object a line: text, label, lang, source. What `--chat` names has no labels and is mostly
chat: rows that clearly are something else are left out. Our own sentences (packaging/intent) always take
part. `holdout` leaves out one source of `--train` after the other and measures on it. Needs numpy only; the
same files give the same weights.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from intent.commands import main

if __name__ == "__main__":
    main()
