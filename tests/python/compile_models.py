"""The models of test_torch_compile.py: small configurations of the package transformers, and convolutional networks, with random
weights. Needs PyTorch; transformers for most."""
import torch
from torch import nn
from torch.nn import functional as F

try:
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
except ImportError:
    transformers = None

# Weights of a larger range than by default, so that the attention is not nearly uniform.
LAYERS = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
TEXT = dict(LAYERS, vocab_size=96, max_position_embeddings=64)
GROUPED = dict(TEXT, num_key_value_heads=2, use_cache=False)
IMAGE = dict(LAYERS, image_size=32, patch_size=8)
SOUND = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 20,
         "init_std": 0.2}


# ---- Convolutional networks


def unit(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs), activation())


class LeNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 32), nn.ReLU(), nn.Linear(32, 10))


class VGG(nn.Sequential):
    def __init__(self):
        super().__init__(unit(3, 8), unit(8, 8), nn.MaxPool2d(2), unit(8, 16), unit(16, 16), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(64, 10), nn.Dropout(), nn.Softmax(1))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = unit(3, 8, stride=2, activation=nn.Hardswish)
        self.wide = nn.Sequential(unit(8, 24, 1, activation=nn.ReLU6), unit(24, 24, groups=24, activation=nn.ReLU6), nn.Conv2d(24, 8, 1), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        return self.head((x + self.wide(x)).mean((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.down, self.up = unit(3, 16, activation=nn.SiLU), nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)

    def forward(self, x):
        x = self.conv(x)
        return x * torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.three, self.five, self.pool = unit(3, 4, 1), unit(3, 6, 3), unit(3, 4, 5), unit(3, 2, 1)

    def forward(self, x):
        return torch.cat((self.one(x), self.three(x), self.five(x), self.pool(F.avg_pool2d(x, 3, 1, 1))), 1)


class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([unit(3 + 4 * i, 4) for i in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat((x, layer(x)), 1)
        return F.avg_pool2d(x, 2)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.up, self.last = unit(3, 8), unit(8, 16), nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        return self.last(torch.cat((first, self.up(second)), 1)), F.interpolate(second, scale_factor=2, mode="bilinear", align_corners=False)


def settle(module):
    """Replaces the zeros and ones of new normalisations by random statistics and weights, as after training."""
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.5)
                part.running_var.uniform_(0.5, 1.5)
                part.weight.uniform_(0.5, 1.5)
                part.bias.normal_(0, 0.5)
    return module.eval()


# ---- The list: {name: (how to make it, how to make its inputs for a batch)}


def image(batch):
    return {"x": torch.randn(batch, 3, 32, 32)}


def pixels(batch):
    return {"pixel_values": torch.randn(batch, 3, 32, 32)}


def text(batch):
    return {"input_ids": torch.randint(1, 96, (batch, 12))}


def masked(batch):
    mask = torch.ones(batch, 12, dtype=torch.int64)
    mask[0, 9:] = 0
    return dict(text(batch), attention_mask=mask)


CONVNETS = {made.__name__: (made, image) for made in (LeNet, VGG, MobileNet, SqueezeExcite, Inception, DenseNet, UNet)}


def make_transformers():
    t = transformers
    both = {"text_config": dict(TEXT, projection_dim=16), "vision_config": dict(IMAGE, projection_dim=16), "projection_dim": 16}
    return {
        "BERT": (lambda: t.BertModel(t.BertConfig(**TEXT)), masked),
        "RoBERTa": (lambda: t.RobertaModel(t.RobertaConfig(**TEXT, pad_token_id=1)), masked),
        "DistilBERT": (lambda: t.DistilBertModel(t.DistilBertConfig(vocab_size=96, dim=32, hidden_dim=48, n_layers=2, n_heads=4)), masked),
        "ALBERT": (lambda: t.AlbertModel(t.AlbertConfig(**TEXT, embedding_size=16)), masked),
        "GPT-2": (lambda: t.GPT2LMHeadModel(t.GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.2,
                                                         use_cache=False)), text),
        "Llama": (lambda: t.LlamaForCausalLM(t.LlamaConfig(**GROUPED)), text),
        "Qwen2": (lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED)), text),
        "T5": (lambda: t.T5EncoderModel(t.T5Config(vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)), masked),
        "ViT": (lambda: t.ViTModel(t.ViTConfig(**IMAGE)), pixels),
        "DeiT": (lambda: t.DeiTModel(t.DeiTConfig(**IMAGE)), pixels),
        "Swin": (lambda: t.SwinModel(t.SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)), pixels),
        "ConvNeXt": (lambda: t.ConvNextModel(t.ConvNextConfig(hidden_sizes=[8, 16], depths=[2, 2], num_stages=2)), pixels),
        "ResNet": (lambda: t.ResNetModel(t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[2, 2], layer_type="basic")), pixels),
        "MobileNetV2": (lambda: t.MobileNetV2Model(t.MobileNetV2Config(depth_multiplier=0.25, image_size=32)), pixels),
        "RegNet": (lambda: t.RegNetModel(t.RegNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], groups_width=4)), pixels),
        "Whisper's encoder": (lambda: WhisperEncoder(t.WhisperConfig(**SOUND)), lambda batch: {"input_features": torch.randn(batch, 8, 40)}),
        "SegFormer": (lambda: t.SegformerForSemanticSegmentation(t.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
            num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16)), pixels),
        "CLIP": (lambda: t.CLIPModel(t.CLIPConfig(**both)), lambda batch: dict(masked(batch), **pixels(batch))),
    }


def all_models():
    """Returns {name: (make, inputs)}: make() returns a module, and inputs(batch) its named inputs."""
    return dict(CONVNETS, **(make_transformers() if transformers is not None else {}))
