"""Small models of transformers for test_torch.py --all, with random weights: as the package defines them, exported without a mask.

Needs transformers: `tools/setup transformers`."""
import sys

import torch

try:
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
except ImportError:
    transformers = None

# Weights of a larger range than by default, so that the attention is not nearly uniform.
LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
TEXT = dict(LAYERS, vocab_size=96, max_position_embeddings=64)
GROUPED = dict(TEXT, num_key_value_heads=2)
IMAGE = dict(LAYERS, image_size=16, patch_size=4)
SOUND = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 20,
         "init_std": 0.2}


def make_modules():
    """Returns {name: (module, inputs)}. Qwen2 and Llama also return their cache, as they do by default."""
    t = transformers
    ids, image, sound = torch.randint(0, 96, (1, 12)), torch.randn(1, 3, 16, 16), torch.randn(1, 8, 40)
    return {"Qwen2ForCausalLM": (t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED)), ids),
            "Qwen2ForCausalLM without cache": (t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED, use_cache=False)), ids),
            "LlamaForCausalLM": (t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)), ids),
            "BertModel": (t.BertModel(t.BertConfig(**TEXT)), ids),
            "BertModel, eager attention": (t.BertModel(t.BertConfig(**TEXT, attn_implementation="eager")), ids),
            "ViTModel": (t.ViTModel(t.ViTConfig(**IMAGE)), image),
            "WhisperEncoder": (WhisperEncoder(t.WhisperConfig(**SOUND)), sound)}


def make_all(tally):
    """Returns {name: (module, example inputs, operator to force to the last device of a list)}, in f32 and bf16; {} if
    transformers is missing."""
    if transformers is None:
        tally.skip("models of transformers", f"no transformers in {sys.executable}: 'tools/setup transformers' installs it")
        return {}
    made = {}
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(5)
        for name, (module, example) in make_modules().items():
            example = example.to(dtype) if example.is_floating_point() else example
            made[f"{name} of transformers, {str(dtype).removeprefix('torch.')}"] = (module.to(dtype), [example], "aten.linear")
    return made
