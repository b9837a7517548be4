"""Chats on disk: what is kept, in which order, and what survives which accident."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from msgspec.structs import replace

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Candidate, Decision, Role, Timings, Usage
from laya_desktop.store.conversations import ConversationStore, MessageState, StoredMessage, title_of

DECISION = Decision(
    model="smol",
    rule="small talk",
    reason="short",
    task="chat",
    candidates=(Candidate(model="big", excluded="no memory"),),
    elapsed_us=12.5,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "conversations.db"


@pytest.fixture
def store(path):
    with closing(ConversationStore(path)) as store:
        yield store


def say(store, chat, content, role=Role.USER, **fields):
    message = StoredMessage(conversation_id=chat.id, role=role, content=content, **fields)
    store.put(message)
    return message


def titles(store, **page):
    return [chat.title for chat in store.list(**page)]


def test_a_chat_comes_back_as_it_was(path):
    with closing(ConversationStore(path)) as store:
        chat = store.create()
        question = say(store, chat, "What is \0 and 🙂?")
        answer = say(
            store,
            chat,
            "Nothing.",
            Role.ASSISTANT,
            model="smol",
            decision=DECISION,
            usage=Usage(prompt_tokens=3, completion_tokens=2),
            timings=Timings(prefill_ms=1.5, decode_ms=2.5),
        )
    with closing(ConversationStore(path)) as store:
        assert store.messages(chat.id) == (question, answer)
        assert titles(store) == ["What is and 🙂?"]
        assert store.notice == ""


def test_half_characters_are_replaced(store):
    chat = store.create()
    say(store, chat, "a\ud83d")
    assert store.messages(chat.id)[0].content == "a?"


def test_order_and_pages(store):
    chats = [store.create(str(number)) for number in range(7)]
    say(store, chats[4], "again")
    expected = ["4", "6", "5", "3", "2", "1", "0"]
    assert titles(store) == expected
    paged, last = [], None
    while page := store.list(limit=2, before=last):
        paged += [chat.title for chat in page]
        last = page[-1]
    assert paged == expected


def test_delete_and_undo(store):
    first, second = store.create("first"), store.create("second")
    say(store, first, "hi")
    undo = store.delete(first.id)
    assert titles(store) == ["second"]
    with pytest.raises(LayaError, match="no longer exists"):
        store.get(first.id)
    store.restore(undo)
    assert titles(store) == ["first", "second"]
    assert len(store.messages(first.id)) == 1
    assert store.get(second.id) == second


def test_what_was_deleted_a_week_ago_goes_for_good(path, monkeypatch):
    with closing(ConversationStore(path)) as store:
        chat = store.create("old")
        say(store, chat, "hi")
        undo = store.delete(chat.id)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
    with closing(ConversationStore(path)) as store:
        with pytest.raises(LayaError):
            store.restore(undo)
        assert store.messages(chat.id) == ()


def test_rename(store):
    chat = store.create()
    store.rename(chat.id, "  my\nchat\0 ")
    say(store, chat, "hi")
    assert titles(store) == ["my chat"]


@pytest.mark.parametrize("call", ["rename", "delete", "get"])
def test_unknown_ids_are_a_sentence(store, call):
    extra = ["x"] if call == "rename" else []
    with pytest.raises(LayaError) as caught:
        getattr(store, call)("nope", *extra)
    assert caught.value.info.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(LayaError):
        store.put(StoredMessage(conversation_id="nope", role=Role.USER, content=""))


def test_an_answer_grows_in_its_place(store):
    chat, other = store.create("chat"), store.create("other")
    answer = say(store, chat, "", Role.ASSISTANT, state=MessageState.PARTIAL, model="auto")
    say(store, chat, "and then?")
    say(store, other, "hi")
    store.put(replace(answer, content="He", model="smol", decision=DECISION, created_at=time.time()))
    store.put(replace(answer, content="Hello", state=MessageState.ERROR, error="The model crashed."))
    stored, _ = store.messages(chat.id)
    assert (stored.content, stored.state, stored.error) == ("Hello", MessageState.ERROR, "The model crashed.")
    assert stored.created_at == answer.created_at
    assert titles(store) == ["other", "chat"]  # only a new turn makes a chat the newest


def test_details_of_another_version_do_not_block_a_chat(path, store):
    chat = store.create()
    say(store, chat, "hi", decision=DECISION)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE messages SET decision = '{\"other\": 1}'")
        db.commit()
    assert store.messages(chat.id)[0].decision is None


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("\n \n hello\tthere \n more", "hello there"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 20, "word " * 10 + "word…"),
        ("好" * 80, "好" * 59 + "…"),
        ("\0\x1b[31m", "[31m"),
    ],
)
def test_titles(text, title):
    assert title_of(text) == title


# Size


def test_ten_thousand_chats_are_listed_quickly(path, store):
    rows = [(f"{number:05}", f"chat {number}", float(number), float(number)) for number in range(10_000)]
    with closing(sqlite3.connect(path)) as db:
        db.executemany(
            "INSERT INTO conversations (id, title, created_at, updated_at) VALUES (?, ?, ?, ?)", rows
        )
        db.commit()
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM conversations WHERE deleted_at IS NULL"
            " AND (updated_at, id) < (5000, '') ORDER BY updated_at DESC, id DESC"
        ).fetchall()
    assert "conversations_by_age ((updated_at,id)<" in plan[0][3]
    assert len(plan) == 1  # and nothing is sorted
    middle = store.list(limit=5000)[-1]
    durations = []
    for _ in range(5):
        started = time.perf_counter()
        page = store.list(before=middle)
        durations.append(time.perf_counter() - started)
    assert [chat.title for chat in page][:2] == ["chat 4999", "chat 4998"]
    assert min(durations) < 0.02


# Accidents

_WRITER = """
import sys
from pathlib import Path
from msgspec.structs import replace
from laya_desktop.core.types import Role
from laya_desktop.store.conversations import ConversationStore, MessageState, StoredMessage
store = ConversationStore(Path(sys.argv[1]))
chat = store.create("survivor")
message = StoredMessage(conversation_id=chat.id, role=Role.ASSISTANT, content="", state=MessageState.PARTIAL)
store.put(message)
for number in range(1, 1_000_000):
    store.put(replace(message, content=f"{number} " * 2000))
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_what_was_saved_survives_a_kill(path):
    for round_ in range(1, 6):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        with process:
            for _ in range(round_ * 7):
                saved = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
        saved = int(rest[-1]) if rest and rest[-1].isdigit() else saved
        with closing(ConversationStore(path)) as store:
            assert store.notice == ""
            (message,) = store.messages(store.list()[0].id)
            words = set(message.content.split())
            assert len(words) == 1  # never a mix of two states
            assert int(words.pop()) >= saved - 1
            assert message.state is MessageState.PARTIAL
            assert len(store.list()) == round_


def damage_header(path):
    path.write_bytes(b"\0" * 64560)


def damage_json(path):
    path.write_text('{"messages": [{"role": "us')


def damage_pages(path):
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [damage_header, damage_json, damage_pages])
def test_a_damaged_file_is_set_aside(path, damage):
    with closing(ConversationStore(path)) as store:
        say(store, store.create(), "hi")
    damage(path)
    damaged = path.read_bytes()
    for _ in range(2):  # also twice within a second
        with closing(ConversationStore(path)) as store:
            assert store.list() == ()
            assert "was damaged" in store.notice
            assert "A new one was started" in store.notice
            store.create("new")
        damage_header(path)
    kept = sorted(path.parent.glob("*.corrupt-*"))
    assert len(kept) == 2
    assert kept[0].read_bytes() == damaged


@pytest.mark.parametrize("damage", [damage_header, lambda path: path.write_bytes(b"")])
def test_the_last_backup_takes_the_place_of_a_damaged_file(path, damage):
    with closing(ConversationStore(path)) as store:
        say(store, store.create(), "hi")
    ConversationStore(path).close()  # the second start makes the backup
    damage(path)
    with closing(ConversationStore(path)) as store:
        assert titles(store) == ["hi"]
        assert "backup" in store.notice
    with closing(ConversationStore(path)) as store:
        assert store.notice == ""


def test_a_damaged_backup_is_not_used(path):
    for _ in range(2):
        ConversationStore(path).close()
    damage_header(path)
    damage_header(path.with_name("conversations.backup.db"))
    with closing(ConversationStore(path)) as store:
        assert "A new one was started" in store.notice


def test_backups_are_made_once_a_day(path, monkeypatch):
    backup = path.with_name("conversations.backup.db")
    ConversationStore(path).close()
    assert not backup.exists()  # nothing worth keeping yet
    ConversationStore(path).close()
    os.utime(backup, (backup.stat().st_mtime - 3600,) * 2)
    before = backup.stat().st_mtime
    ConversationStore(path).close()
    assert backup.stat().st_mtime == before
    os.utime(backup, (before - 25 * 3600,) * 2)
    ConversationStore(path).close()
    assert backup.stat().st_mtime > before
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "conversations.backup.db",
        "conversations.db",
    ]


def test_an_empty_file_is_a_new_one(path):
    path.parent.mkdir()
    path.touch()
    with closing(ConversationStore(path)) as store:
        assert (store.list(), store.notice) == ((), "")


def test_a_file_of_a_newer_version_is_left_alone(path):
    ConversationStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(LayaError, match="newer version"):
        ConversationStore(path)
    assert path.read_bytes() == before


def test_a_full_disk_is_a_sentence_and_loses_nothing(store):
    chat = store.create()
    answer = say(store, chat, "half", Role.ASSISTANT, state=MessageState.PARTIAL)
    pages = store._database.read("PRAGMA page_count")[0][0]
    store._database.read(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LayaError, match="The disk is full") as caught:
        store.put(replace(answer, content="x" * 100_000))
    assert caught.value.info.code is ErrorCode.INTERNAL
    assert store.messages(chat.id)[0].content == "half"
    store._database.read("PRAGMA max_page_count = 1000000")
    store.put(replace(answer, content="x" * 100_000))
    assert len(store.messages(chat.id)[0].content) == 100_000


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(LayaError, match="cannot be used"):
        ConversationStore(blocked / "conversations.db")
    folder = tmp_path / "conversations.db"
    folder.mkdir()
    with pytest.raises(LayaError, match="cannot be opened"):
        ConversationStore(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_a_sentence(path):
    ConversationStore(path).close()
    path.parent.chmod(0o500)
    try:
        with pytest.raises(LayaError, match=r"cannot be (written|opened)"):
            ConversationStore(path)
    finally:
        path.parent.chmod(0o700)


def test_a_file_that_another_program_holds_is_a_sentence(path, store, monkeypatch):
    store._database.read("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LayaError, match="in use by another program"):
            store.create("blocked")
        other.rollback()
    assert store.create("free").title == "free"


def test_two_stores_on_one_file_lose_nothing(path, store):
    with closing(ConversationStore(path)) as other:
        first, second = store.create("one"), other.create("two")
        say(store, second, "hi")
        say(other, first, "hi")
        assert sorted(titles(store)) == sorted(titles(other)) == ["one", "two"]


def test_after_closing_calls_are_refused(path):
    store = ConversationStore(path)
    store.close()
    store.close()
    with pytest.raises(LayaError):
        store.list()
