"""What the headers of many architectures say about their caches, written by the format's own library."""

import struct
from pathlib import Path

import gguf
import pytest

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.memory import gguf_shape
from laya_desktop.engine.memory.shape import ModelShape, read_shape

Value = int | list[int] | list[bool]


def write(
    path: Path, architecture: str, tensors: dict[str, tuple[int, ...]] | None = None, **keys: Value
) -> Path:
    """A header with these keys (two underscores stand for a dot) and tensors of zeros behind it."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in {"block_count": 4, "embedding_length": 256, "context_length": 4096, **keys}.items():
        name = f"{architecture}.{key.replace('__', '.')}"
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_uint32(name, value)
    for name, shape in ({"token_embd.weight": (256, 1000)} if tensors is None else tensors).items():
        writer.add_tensor_info(name, list(reversed(shape)), gguf.np.dtype("float32"), gguf.np.prod(shape) * 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("ab") as file:
        size = sum(4 * int(gguf.np.prod(shape)) for shape in (tensors or {"": (256, 1000)}).values())
        file.truncate(file.tell() + size + 4096)
    return path


def shape_of(folder: Path, architecture: str, **keys: Value) -> ModelShape:
    return read_shape(write(folder / "model.gguf", architecture, **keys), "gguf")


HEADS: dict[str, Value] = {"attention__head_count": 4, "attention__head_count_kv": 2}
STATE_SPACE: dict[str, Value] = {
    "ssm__conv_kernel": 4,
    "ssm__inner_size": 512,
    "ssm__state_size": 16,
    "ssm__time_step_rank": 16,
}


def windows(shape: ModelShape) -> list[int]:
    return [layer.window for layer in shape.layers]


def test_heads_default_to_all_and_lengths_to_their_share(tmp_path: Path) -> None:
    (layer, *_) = shape_of(tmp_path, "llama", attention__head_count=4).layers
    assert (layer.kv_heads, layer.key_length, layer.value_length) == (4, 64, 64)


def test_given_lengths_and_heads_of_each_layer(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path,
        "openelm",
        attention__head_count=[4, 4, 8, 8],
        attention__head_count_kv=[1, 2, 3, 0],
        attention__key_length=96,
        attention__value_length=32,
        feed_forward_length=[100, 300, 200, 100],
    )
    assert [(layer.key_width, layer.value_width) for layer in shape.layers] == [
        (96, 32),
        (192, 64),
        (288, 96),
        (0, 0),
    ]
    assert shape.feed_forward == 300
    assert shape.heads_width == 8 * 96
    assert shape.vocabulary == 1000


def test_long_lists_are_read(tmp_path: Path) -> None:
    counts = [1 + index % 3 for index in range(90)]
    shape = shape_of(
        tmp_path, "deci", block_count=90, attention__head_count=6, attention__head_count_kv=counts
    )
    assert [layer.kv_heads for layer in shape.layers] == counts


@pytest.mark.parametrize(
    ("architecture", "keys", "expected"),
    [
        ("gemma2", {}, [4096, 0] * 4),
        ("gemma2", {"attention__sliding_window": 1024}, [1024, 0] * 4),
        ("gemma3", {}, [0] * 8),
        ("gemma3", {"attention__sliding_window": 512}, [512] * 5 + [0] + [512] * 2),
        ("gemma3n", {"attention__sliding_window": 512}, [512] * 4 + [0] + [512] * 3),
        ("llama4", {}, ([8192] * 3 + [0]) * 2),
        ("llama4", {"attention__sliding_window": 0}, [0] * 8),
        ("phi3", {"attention__sliding_window": 2048}, [0] * 8),
        ("llama", {"attention__sliding_window": 2048}, [0] * 8),
        ("gpt-oss", {"attention__sliding_window": 128}, [128, 0] * 4),
        ("smallthinker", {"attention__sliding_window": 1}, [0, 4096, 4096, 4096] * 2),
        ("exaone4", {"attention__sliding_window": 4096}, [0] * 8),
        (
            "gemma3",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": [True, False] * 4},
            [512, 0] * 4,
        ),
        ("gemma3", {"attention__sliding_window": 512, "attention__sliding_window_pattern": 2}, [512, 0] * 4),
    ],
)
def test_layers_with_a_window(
    tmp_path: Path, architecture: str, keys: dict[str, Value], expected: list[int]
) -> None:
    assert windows(shape_of(tmp_path, architecture, block_count=8, **HEADS, **keys)) == expected


def test_heads_of_layers_with_a_window_may_have_another_length(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path,
        "gemma4",
        **HEADS,
        attention__sliding_window=512,
        attention__sliding_window_pattern=[True, True, False, True],
        attention__key_length=512,
        attention__value_length=512,
        attention__key_length_swa=256,
        attention__value_length_swa=256,
        attention__shared_kv_layers=1,
    )
    assert [(layer.kv_heads, layer.key_length) for layer in shape.layers] == [
        (2, 256),
        (2, 256),
        (2, 512),
        (0, 0),  # uses the cache of an earlier layer
    ]


def test_gemma3n_shares_the_cache_of_its_first_twenty_layers(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "gemma3n", block_count=30, **HEADS, attention__sliding_window=512)
    assert sum(layer.kv_heads > 0 for layer in shape.layers) == 20


def test_latent_attention_keeps_no_values(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path,
        "deepseek2",
        attention__head_count=16,
        attention__head_count_kv=1,
        attention__key_length=576,
        attention__value_length=512,
        attention__key_length_mla=192,
        attention__value_length_mla=128,
        expert_used_count=6,
        expert_feed_forward_length=100,
        feed_forward_length=500,
    )
    assert (shape.layers[0].key_width, shape.layers[0].value_width) == (576, 0)
    assert shape.feed_forward == 600


def test_mamba_has_a_state_and_no_cache(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "mamba", attention__head_count=0, **STATE_SPACE)
    # (conv_kernel - 1) × inner_size and state_size × inner_size numbers of 32 bits.
    assert {(layer.key_width, layer.state) for layer in shape.layers} == {(0, 4 * (3 * 512 + 16 * 512))}


def test_mamba2_rolls_its_groups_too(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "mamba2", attention__head_count=0, ssm__group_count=2, **STATE_SPACE)
    assert shape.layers[0].state == 4 * (3 * (512 + 2 * 2 * 16) + 16 * 512)


def test_rwkv_shifts_tokens(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "rwkv7", attention__head_count=0, wkv__head_size=64)
    assert shape.layers[0].state == 4 * (2 * 256 + 256 * 64)


def test_jamba_is_recurrent_where_it_has_no_kv_heads(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path, "jamba", attention__head_count=4, attention__head_count_kv=[0, 0, 2, 0], **STATE_SPACE
    )
    state = 4 * (3 * 512 + 16 * 512)
    assert [(layer.kv_heads, layer.state) for layer in shape.layers] == [
        (0, state),
        (0, state),
        (2, 0),
        (0, state),
    ]


def test_qwen3next_has_attention_in_every_fourth_layer(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "qwen3next", block_count=8, ssm__group_count=2, **HEADS, **STATE_SPACE)
    assert [bool(layer.state) for layer in shape.layers] == [True, True, True, False] * 2
    assert [layer.kv_heads for layer in shape.layers] == [0, 0, 0, 2] * 2


def test_layers_listed_as_recurrent(tmp_path: Path) -> None:
    listed = [False, True, True, False]
    shape = shape_of(
        tmp_path, "qwen35", attention__recurrent_layers=listed, ssm__group_count=1, **HEADS, **STATE_SPACE
    )
    assert [bool(layer.state) for layer in shape.layers] == listed


def test_falcon_h1_has_both_in_every_layer(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "falcon-h1", ssm__group_count=1, **HEADS, **STATE_SPACE)
    assert all(layer.state and layer.kv_heads == 2 for layer in shape.layers)


def test_nemotron_h_has_layers_of_three_kinds(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path,
        "nemotron_h",
        attention__head_count=4,
        attention__head_count_kv=[0, 2, 0, 0],
        feed_forward_length=[0, 0, 800, 0],
        ssm__group_count=1,
        **STATE_SPACE,
    )
    assert [(bool(layer.state), layer.kv_heads) for layer in shape.layers] == [
        (True, 0),
        (False, 2),
        (False, 0),
        (True, 0),
    ]


def test_short_convolutions(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path, "lfm2", attention__head_count=4, attention__head_count_kv=[0, 2, 0, 2], shortconv__l_cache=3
    )
    assert [layer.state for layer in shape.layers] == [4 * 2 * 256, 0, 4 * 2 * 256, 0]


def test_draft_layers_have_no_cache(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "glm4moe", nextn_predict_layers=1, **HEADS)
    assert [layer.kv_heads for layer in shape.layers] == [2, 2, 2, 0]


def test_sparse_attention_keeps_keys_to_choose_by(tmp_path: Path) -> None:
    shape = shape_of(tmp_path, "deepseek32", attention__indexer__key_length=128, **HEADS)
    assert [layer.index_length for layer in shape.layers] == [128] * 4


def test_what_cannot_be_counted_exactly_says_so(tmp_path: Path) -> None:
    assert not shape_of(tmp_path, "deepseek4", attention__sliding_window=128, **HEADS).exact
    assert shape_of(tmp_path, "llama", **HEADS).exact


TENSORS = {
    "token_embd.weight": (256, 1000),
    "blk.0.attn_q.weight": (256, 256),
    "blk.1.attn_q.weight": (256, 512),
    "blk.1.attn_norm.weight": (256,),
    "output_norm.weight": (256,),
}


def test_weights_by_layer(tmp_path: Path) -> None:
    shape = read_shape(write(tmp_path / "m.gguf", "llama", TENSORS, block_count=2, **HEADS), "gguf")
    assert [layer.weights for layer in shape.layers] == [4 * 256 * 256, 4 * (256 * 512 + 256)]
    assert (shape.input_bytes, shape.output_bytes, shape.tied_output) == (4 * 256_000, 4 * 256, True)
    assert shape.weights == 4 * sum(256 * (1000, 256, 512, 1, 1)[index] for index in range(5))


def test_an_output_of_its_own_is_not_tied(tmp_path: Path) -> None:
    tensors = TENSORS | {"output.weight": (256, 1000)}
    shape = read_shape(write(tmp_path / "m.gguf", "llama", tensors, block_count=2, **HEADS), "gguf")
    assert not shape.tied_output
    assert shape.output_bytes == 4 * (256 * 1000 + 256)


@pytest.mark.parametrize(("machine", "copied"), [("x86_64", {"Q4_K"}), ("arm64", {"Q4_K", "Q6_K", "Q8_0"})])
def test_weights_that_the_processor_wants_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, copied: set[str]
) -> None:
    monkeypatch.setattr(gguf_shape.platform, "machine", lambda: machine)
    kinds = {"Q4_K": (12, 144), "Q6_K": (14, 210), "Q8_0": (8, 272), "F16": (1, 512)}
    for name, (number, row_bytes) in kinds.items():
        path = write(tmp_path / "m.gguf", "llama", TENSORS, block_count=2, **HEADS)
        data = path.read_bytes()
        at = data.index(b"blk.1.attn_q.weight") + 19 + 4 + 16
        path.write_bytes(data[:at] + struct.pack("<I", number) + data[at + 4 :])
        layer = read_shape(path, "gguf").layers[1]
        assert layer.repacked == (512 * row_bytes if name in copied else 0), name


def test_parts_of_a_split_file_are_one_model(tmp_path: Path) -> None:
    first = {name: TENSORS[name] for name in ("token_embd.weight", "blk.0.attn_q.weight")}
    rest = {name: TENSORS[name] for name in TENSORS if name not in first}
    one = write(tmp_path / "m-00001-of-00002.gguf", "llama", first, block_count=2, **HEADS)
    two = write(tmp_path / "m-00002-of-00002.gguf", "llama", rest)
    whole = read_shape(write(tmp_path / "m.gguf", "llama", TENSORS, block_count=2, **HEADS), "gguf")
    split = read_shape(two, "gguf")
    assert split.layers == whole.layers
    assert split.weights == whole.weights
    assert split.file_bytes == one.stat().st_size + two.stat().st_size


@pytest.mark.parametrize("keys", [{"block_count": 0}, {"block_count": 10**6}, {"embedding_length": 0}])
def test_a_header_without_its_size_is_refused(tmp_path: Path, keys: dict[str, Value]) -> None:
    with pytest.raises(LayaError, match="does not say how large") as caught:
        shape_of(tmp_path, "llama", **keys)
    assert caught.value.info.code == ErrorCode.MODEL_LOAD_FAILED


def test_a_missing_file_and_a_backend_without_files(tmp_path: Path) -> None:
    with pytest.raises(LayaError) as caught:
        read_shape(tmp_path / "gone.gguf", "gguf")
    assert caught.value.info.code == ErrorCode.MODEL_FILE_MISSING
    with pytest.raises(LayaError) as caught:
        read_shape("http://localhost:1", "openai")
    assert caught.value.info.code == ErrorCode.BACKEND_MISSING
