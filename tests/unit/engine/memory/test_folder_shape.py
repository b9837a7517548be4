"""What a folder with config.json and safetensors files says about a model's memory."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.memory.estimate import estimate
from laya_desktop.engine.memory.shape import LayerShape, ModelShape, read_shape

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
SIZES = {
    "model.embed_tokens.weight": 12_800,
    "model.layers.0.self_attn.q_proj.weight": 8_192,
    "model.layers.1.mlp.up_proj.weight": 16_384,
    "model.layers.1.mlp.up_proj.scales": 512,
    "model.norm.weight": 128,
}


def write_tensors(path: Path, sizes: dict[str, int]) -> Path:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, size in sizes.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
    return path


def write_folder(folder: Path, **changes: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    write_tensors(folder / "model.safetensors", SIZES)
    return folder


def shape_of(folder: Path, backend: str = "hf", **changes: Any) -> ModelShape:
    return read_shape(write_folder(folder, **changes), backend)


def failure(folder: Path) -> LayaError:
    with pytest.raises(LayaError) as caught:
        read_shape(folder, "hf")
    return caught.value


def test_a_plain_model(tmp_path: Path) -> None:
    shape = shape_of(tmp_path)
    assert shape.architecture == "llama"
    assert [layer.weights for layer in shape.layers] == [8_192, 16_896]
    assert (shape.layers[0].kv_heads, shape.layers[0].key_length) == (2, 16)
    assert (shape.input_bytes, shape.output_bytes, shape.weights) == (12_800, 128, sum(SIZES.values()))
    assert (shape.vocabulary, shape.feed_forward, shape.trained_context) == (100, 128, 2048)
    assert shape.tied_output
    assert shape.exact


def test_values_of_the_cache_are_as_wide_as_the_model_computes(tmp_path: Path) -> None:
    half = estimate(shape_of(tmp_path), context_tokens=256, streams=1)
    full = estimate(shape_of(tmp_path, torch_dtype="float32"), context_tokens=256, streams=1)
    assert half.kv == 2 * 256 * (2 * 16 * 2) * 2
    assert full.kv == 2 * half.kv


def test_parts_named_by_an_index(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    names = list(SIZES)
    parts = {"model-1.safetensors": names[:2], "model-2.safetensors": names[2:]}
    for part, tensors in parts.items():
        write_tensors(tmp_path / part, {name: SIZES[name] for name in tensors})
    places = {name: part for part, tensors in parts.items() for name in tensors}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    write_tensors(tmp_path / "adapter.safetensors", {"model.layers.0.lora": 1000})  # not in the index
    assert read_shape(tmp_path, "mlx").weights == sum(SIZES.values())
    (tmp_path / "model-2.safetensors").unlink()
    assert failure(tmp_path).info.code == ErrorCode.MODEL_FILE_MISSING
    assert "model-2.safetensors is missing" in failure(tmp_path).info.message


def test_windows_by_list_and_by_pattern(tmp_path: Path) -> None:
    listed = shape_of(tmp_path, sliding_window=512, layer_types=["sliding_attention", "full_attention"])
    assert [layer.window for layer in listed.layers] == [512, 0]
    pattern = shape_of(tmp_path, sliding_window=512, sliding_window_pattern=2)
    assert [layer.window for layer in pattern.layers] == [512, 0]
    unused = shape_of(tmp_path, model_type="qwen2", sliding_window=512)
    assert [layer.window for layer in unused.layers] == [0, 0]


def test_latent_attention_is_kept_compressed_by_mlx_only(tmp_path: Path) -> None:
    lengths = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
    mlx = shape_of(tmp_path, "mlx", **lengths).layers[0]
    assert mlx.key_width + mlx.value_width == 576
    hf = shape_of(tmp_path, **lengths).layers[0]
    assert (hf.key_width, hf.value_width) == (4 * 192, 4 * 128)


def test_linear_attention_has_a_state(tmp_path: Path) -> None:
    shape = shape_of(
        tmp_path,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_key_head_dim=16,
        linear_num_value_heads=4,
        linear_value_head_dim=8,
        linear_conv_kernel_dim=4,
    )
    state = 4 * ((2 * 32 + 32) * 4 + 32 * 16)
    assert shape.layers[0] == LayerShape(weights=8_192, state=state)
    assert shape.layers[1].kv_heads == 2


def test_the_language_part_of_a_model_that_sees(tmp_path: Path) -> None:
    inner = {"text_config": CONFIG | {"hidden_size": 128}, "num_hidden_layers": 7}
    assert shape_of(tmp_path, **inner).embedding == 128
    assert len(shape_of(tmp_path, **inner).layers) == 2


def test_an_unknown_kind_of_layer_is_not_exact(tmp_path: Path) -> None:
    assert not shape_of(tmp_path, layer_types=["mamba", "full_attention"]).exact
    assert not shape_of(tmp_path, state_size=16).exact


def test_damaged_folders_say_what_is_wrong(tmp_path: Path) -> None:
    assert failure(tmp_path).info.code == ErrorCode.MODEL_FILE_MISSING
    write_folder(tmp_path, hidden_size="many")
    assert "does not say how large" in failure(tmp_path).info.message
    write_folder(tmp_path)
    (tmp_path / "config.json").write_text("[1")
    assert "config.json: it is damaged" in failure(tmp_path).info.message
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "no safetensors file" in failure(tmp_path).info.message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8 + b"{}",
        struct.pack("<Q", 4) + b"[1] ",
        struct.pack("<Q", 9) + b'{"a": 1}}',
        struct.pack("<Q", 40) + b'{"a": {"data_offsets": [5, -1]}}        ',
        struct.pack("<Q", 40) + b'{"a": {"data_offsets": ["x", 1]}}       ',
    ],
)
def test_damaged_tensors_are_refused(tmp_path: Path, content: bytes) -> None:
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    assert failure(tmp_path).info.code == ErrorCode.MODEL_LOAD_FAILED


def test_a_download_that_broke_off_is_noticed(tmp_path: Path) -> None:
    write_folder(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "truncated: 100 bytes missing" in failure(tmp_path).info.message
