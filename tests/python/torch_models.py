"""Small PyTorch models for test_torch.py, and one module for each lowering that other compilers have got wrong.

Each is exported and run on each list of devices, with an operator forced to another device, and with random placements."""
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

import oracle
import torch_runs
import torch_transformers

# ---- Lowerings that other compilers have got wrong


class DivByScalar(nn.Module):
    def forward(self, x):
        return (x * 2) / 7


class MeanOfMiddle(nn.Module):
    def forward(self, x):
        return torch.relu(x).mean(1), x.mean((1, 2), keepdim=True)


class CatOfThree(nn.Module):
    def forward(self, x):
        return torch.cat((x, torch.relu(x), x[:, :1] * 3), 1)


class SoftmaxOfMiddle(nn.Module):
    def forward(self, x):
        return F.softmax(x, 1), F.softmax(x, 2)


class AddAlpha(nn.Module):
    def forward(self, x):
        return torch.add(x, torch.relu(x), alpha=-2.5), torch.sub(x, x.abs(), alpha=3)


class Dilation(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Conv2d(6, 8, 3, padding=2, dilation=2)
        self.long = nn.Conv2d(8, 4, (3, 2), padding=(3, 0), dilation=(3, 2), stride=2, groups=2)

    def forward(self, x):
        return self.long(torch.relu(self.wide(x)))


def settled(norm):
    """Replaces the zeros and ones of a new BatchNorm by random statistics and weights, as after training."""
    with torch.no_grad():
        norm.running_mean.copy_(torch.randn_like(norm.running_mean))
        norm.running_var.copy_(torch.rand_like(norm.running_var) + 0.5)
        norm.weight.copy_(torch.rand_like(norm.weight) + 0.5)
        norm.bias.copy_(torch.randn_like(norm.bias))
    return norm


class NormWithoutBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 8, 3, padding=1, bias=False)
        self.norm = settled(nn.BatchNorm2d(8))

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class AddReadTwice(nn.Module):
    """A module whose convolution, add and relu could be fused, but the sum is also an output, and another node reads it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, x):
        total = self.conv(x) + x
        return torch.relu(total), total, torch.relu(total) * total.mean()


class EndsInAlias(nn.Module):
    """If tanh is forced to another device, it reads a view, an alias and a detached value, of a computed value and of an
    input."""

    def forward(self, x):
        y = torch.relu(x)
        flat = torch.ops.aten.alias(y).reshape(x.shape[0], -1).detach()
        return torch.tanh(flat), torch.tanh(torch.ops.aten.alias(x).transpose(1, 2)), flat, torch.ops.aten.alias(x)


# ---- Models


class ResNetBlock(nn.Module):
    def __init__(self, channels=16, stride=2):
        super().__init__()
        self.first = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
        self.first_norm = settled(nn.BatchNorm2d(2 * channels))
        self.second = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False)
        self.second_norm = settled(nn.BatchNorm2d(2 * channels))
        self.short = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1, stride, bias=False), settled(nn.BatchNorm2d(2 * channels)))
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(2 * channels, 10)

    def forward(self, x):
        y = self.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y = self.relu(y + self.short(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(y, 1), 1))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        def pair(before, after):
            return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), settled(nn.BatchNorm2d(after)), nn.ReLU(inplace=True),
                                 nn.Conv2d(after, after, 3, padding=1), nn.GroupNorm(2, after), nn.SiLU())
        self.down1, self.down2, self.bottom = pair(3, width), pair(width, 2 * width), pair(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.Conv2d(2 * width, width, 1)
        self.join2, self.join1 = pair(4 * width, 2 * width), pair(2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        y = self.bottom(F.max_pool2d(second, 2))
        y = self.join2(torch.cat((second, self.up2(y)), 1))
        y = F.interpolate(self.up1(y), scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(self.join1(torch.cat((first, y), 1))))


class Encoder(nn.Module):
    def __init__(self, size=32, heads=4, words=50):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size, padding_idx=0), nn.Embedding(16, size)
        self.layer = nn.TransformerEncoderLayer(size, heads, 4 * size, activation="gelu", batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(size)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        hidden = ids == 0
        return self.norm(self.layer(x, src_key_padding_mask=hidden))


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Decoder(nn.Module):
    """A decoder layer that processes one token per step. It has rotary position embeddings, grouped-query attention, and a cache
    of fixed size, into which index_copy writes the new row, and which the step returns."""

    def __init__(self, size=32, heads=4, groups=2, room=12):
        super().__init__()
        self.heads, self.groups, self.depth = heads, groups, size // heads
        self.before, self.after = RMSNorm(size), RMSNorm(size)
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, groups * self.depth), nn.Linear(size, groups * self.depth)
        self.o = nn.Linear(size, size, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in ((size, 64), (size, 64), (64, size)))
        frequencies = 1.0 / 100.0 ** (torch.arange(0, self.depth, 2) / self.depth)
        angles = torch.outer(torch.arange(room), frequencies).repeat(1, 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def rotate(self, x, place):
        half = self.depth // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * self.cosines[place] + turned * self.sines[place]

    def attend(self, x, keys, values, place):
        batch = x.shape[0]
        x = self.before(x)
        q = self.rotate(self.q(x).view(batch, 1, self.heads, self.depth).transpose(1, 2), place)
        k = self.rotate(self.k(x).view(batch, 1, self.groups, self.depth).transpose(1, 2), place)
        v = self.v(x).view(batch, 1, self.groups, self.depth).transpose(1, 2)
        keys, values = keys.index_copy(2, place, k), values.index_copy(2, place, v)
        seen = (torch.arange(keys.shape[2]) <= place)[None, None, None, :]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, 1, -1)), keys, values

    def forward(self, x, keys, values, place):
        made, keys, values = self.attend(x, keys, values, place)
        x = x + made
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), keys, values


class DecoderWithState(nn.Module):
    """A Decoder whose cache is in buffers, which a step changes in place."""

    def __init__(self, room=12):
        super().__init__()
        self.decoder = Decoder(room=room)
        self.register_buffer("keys", torch.zeros(1, 2, room, 8))
        self.register_buffer("values", torch.zeros(1, 2, room, 8))

    def forward(self, x, place):
        y, keys, values = self.decoder(x, self.keys, self.values, place)
        self.keys.copy_(keys)
        self.values.copy_(values)
        return y


class OnlyInPyTorch(nn.Module):
    """A model with operators in its middle that cannot be lowered to ONNX: with one output, several outputs, a list of outputs,
    an i32 output, and a constant input."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.register_buffer("edges", torch.linspace(-2, 2, 7))

    def forward(self, x):
        y = torch.relu(self.first(x))
        places = torch.searchsorted(self.edges, y, right=True)
        inverse = torch.linalg.inv(y[0] + torch.eye(4) * 5)
        _, lower, upper = torch.linalg.lu(y)
        values, which = torch.kthvalue(y, 2, -1)
        left, right = torch.tensor_split(y, [1], -1)
        windows = F.unfold(y, (2, 3))
        return (places * 2, torch.tanh(inverse), lower @ upper, values, which, left * 2, right, torch.relu(windows),
                torch.bucketize(x, self.edges, out_int32=True))


def image(*shape):
    return torch.randn(shape)


def make_all():
    """Returns {name: (module, example inputs, operator to force to the last device of a list)}."""
    torch.manual_seed(5)
    small, ids = image(2, 6, 9, 8), torch.tensor([[3, 9, 1, 0, 0], [7, 7, 49, 2, 5]])
    token = torch.randn(1, 1, 32, dtype=torch.bfloat16)
    cache = lambda: torch.randn(1, 2, 12, 8).to(torch.bfloat16)
    models = {name: (module, [small], forced) for name, module, forced in (
        ("div by a scalar", DivByScalar(), "aten.mul"), ("mean over a middle dimension", MeanOfMiddle(), "aten.relu"),
        ("cat of three", CatOfThree(), "aten.relu"), ("softmax over a middle dimension", SoftmaxOfMiddle(), "aten.softmax"),
        ("add with alpha", AddAlpha(), "aten.relu"), ("dilation", Dilation(), "aten.relu"),
        ("batch-norm without convolution bias", NormWithoutBias(), "aten.relu"),
        ("a fused add that is also read elsewhere", AddReadTwice(), "aten.mean"),
        ("a partition that ends in an alias", EndsInAlias(), "aten.tanh"))}
    models["ResNet block"] = (ResNetBlock(), [image(2, 16, 12, 12)], "aten.add")
    models["U-Net"] = (UNet(), [image(1, 3, 16, 24)], "aten.cat")
    models["encoder layer"] = (Encoder(), [ids], "aten.layer_norm")
    models["encoder layer, bf16"] = (Encoder().to(torch.bfloat16), [ids], "aten.layer_norm")
    models["decoder layer, f32"] = (Decoder(), [token.float(), cache().float(), cache().float(), torch.tensor([4])], "aten.cat")
    models["decoder layer, bf16"] = (Decoder().to(torch.bfloat16), [token, cache(), cache(), torch.tensor([4])], "aten.cat")
    models["decoder layer with state, bf16"] = (DecoderWithState().to(torch.bfloat16), [token, torch.tensor([4])], "aten.index_copy")
    return models


def compare_all(expected, actual):
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        different = torch_runs.compare(e, a, share=0.5)
        if different:
            return f"output {i}: {different}"
    return None


def attempt(tally, label, exported, expected, *options):
    try:
        tally.add(label, compare_all(expected, exported.run(*options)))
    except oracle.CleaveError as error:
        tally.add(label, str(error)[-600:])


def run_steps(tally, name, module, exported, devices):
    """Runs four steps of a decoder in Cleave and in PyTorch. The cache that a step returns is the input of the next step."""
    buffers = dict(module.named_buffers())
    wrong = None
    for step in range(4):
        examples = [torch.randn(1, 1, 32, dtype=torch.bfloat16), torch.tensor([step])]
        exported.arguments, expected = exported.ask(module, examples)
        try:
            actual = exported.run("--devices", devices)
        except oracle.CleaveError as error:
            wrong = str(error)[-600:]
            break
        wrong = wrong or compare_all(expected, actual)
        for place, held in enumerate(exported.state):
            made = torch.from_numpy(actual[len(actual) - len(exported.state) + place].view("int16").copy()).view(torch.bfloat16)
            buffers[held].copy_(made)
    tally.add(f"{name}, four steps, {devices}", wrong)


def run_only_in_pytorch(tally, folder, names):
    """Checks that operators which cannot be lowered to ONNX run on the `torch` backend, and that without it the error names
    them."""
    name, devices = "operators that only PyTorch has", "npu,cpu,torch"
    if names and not any(wanted in name for wanted in names):
        return
    os.environ.setdefault("CLEAVE_TORCH", os.path.join(os.path.dirname(torch.__file__), "lib"))
    torch.manual_seed(0)
    exported = torch_runs.Exported(os.path.join(folder, "only-in-pytorch"), OnlyInPyTorch().eval(), [torch.randn(2, 4, 4)])
    try:
        exported.run("--devices", "npu,cpu")
        tally.add(f"{name}, refused by npu,cpu", "the run succeeded, although neither device supports the operators")
    except oracle.CleaveError as error:
        text = str(error)
        said = "no device can run it: npu: " in text and "; cpu: " in text and ("searchsorted" in text or "linalg" in text)
        tally.add(f"{name}, refused by npu,cpu", None if said else text[-600:])
    missing = oracle.missing_device("torch")
    if missing:
        tally.skip(f"{name}, {devices}", missing)
    else:
        attempt(tally, f"{name}, {devices}", exported, exported.expected, "--devices", devices)


# Options for OpenVINO alone. They allow it to compute 64-bit integers in 32 bits, and f16 and bf16 in f32, which does not matter
# for these models.
OPENVINO = ("--devices", "openvino:CPU", "--device-option", "openvino:CPU:integers=narrow", "--device-option", "openvino:CPU:halves=wide")


def run_models(tally, folder, names, devices, every):
    generator = random.Random(3)
    run_only_in_pytorch(tally, folder, names)
    missing = oracle.missing_device("openvino:CPU")
    if missing:
        tally.skip("models on openvino:CPU", missing)
    models = make_all()
    if every:
        models.update(torch_transformers.make_all(tally))
    for name, (module, examples, forced) in models.items():
        if names and not any(wanted in name for wanted in names):
            continue
        module = module.eval()
        exported = torch_runs.Exported(os.path.join(folder, name.replace(" ", "-")), module, examples)
        for device_list in devices:
            attempt(tally, f"{name}, {device_list}", exported, exported.expected, "--devices", device_list)
            if "," not in device_list:
                continue
            attempt(tally, f"{name}, {device_list}, {forced} on the last device", exported, exported.expected, "--devices", device_list, "--strategy",
                    "contiguous", "--force", f"{forced}={device_list.rsplit(',', 1)[1]}")
            if device_list.startswith("npu"):
                attempt(tally, f"{name}, {device_list}, an NPU that supports all operators", exported, exported.expected, "--devices", device_list, "--npu-spec",
                        "all", "--verify")
            for k in range(8 if every else 1):
                nodes = oracle.plan_nodes(exported.path, "--devices", device_list, "--npu-spec", "all") if device_list == "npu,cpu" else []
                pins = os.path.join(exported.folder, f"pins-{k}")
                with open(pins, "w", encoding="utf-8") as out:
                    out.write("\n".join(oracle.random_pins(nodes, generator)) + "\n")
                if nodes:
                    attempt(tally, f"{name}, {device_list}, placement {k}", exported, exported.expected, "--devices", device_list, "--npu-spec", "all",
                            "--pins", pins)
        if not missing and isinstance(module, (ResNetBlock, UNet, Encoder, Decoder, DecoderWithState)):
            attempt(tally, f"{name}, openvino:CPU alone", exported, exported.expected, *OPENVINO)
        if "state" in name:
            for device_list in devices:
                run_steps(tally, name, module, exported, device_list)
