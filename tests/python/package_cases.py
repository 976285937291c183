"""Uses of third-party packages that run models with ONNX Runtime, for test_packages.py: one use in a process of its own.

    python package_cases.py CASE onnxruntime|cleave OUTPUT.npz

The packages are those of tools/requirements-packages.txt, unchanged, with the models that they carry. With "cleave", the drop-in
takes the place of ONNX Runtime first. Prints the name of the module that `import onnxruntime` gave.
"""
import json
import os
import sys
import tempfile

import numpy as np

SECOND = 16000


def voice(seconds, rate=SECOND):
    """A sound with syllables: harmonics of a gliding pitch in bursts, with some noise."""
    t = np.arange(int(seconds * rate)) / rate
    pitch = 140 + 40 * np.sin(2 * np.pi * 0.7 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = sum(np.sin(k * phase) / k for k in range(1, 12))
    bursts = np.clip(np.sin(2 * np.pi * 2.5 * t) * 3, 0, 1)
    return (0.25 * bursts * sound / 2 + 0.005 * np.random.default_rng(0).standard_normal(len(t))).astype(np.float32)


def rapidocr():
    """The text of a drawn page: detection, direction and recognition."""
    from PIL import Image, ImageDraw, ImageFont
    from rapidocr import RapidOCR
    page = Image.new("RGB", (640, 260), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(34)
    lines = ["Cleave runs one network", "on all devices", "Seite 42, 28.11.2026"]
    for i, line in enumerate(lines):
        draw.text((20, 20 + 80 * i), line, fill="black", font=font)
    found = RapidOCR()(np.array(page))
    assert list(found.txts) == lines, found.txts
    return {"texts": np.array(found.txts), "scores": np.array(found.scores), "boxes": np.array(found.boxes)}


def magika():
    """The types of files' contents."""
    from magika import Magika
    samples = {"python": b"import os\n\ndef main():\n    print(os.getcwd())\n\nif __name__ == '__main__':\n    main()\n" * 4,
               "c": b"#include <stdio.h>\n\nint main(void) {\n  printf(\"hello\\n\");\n  return 0;\n}\n" * 4,
               "json": json.dumps([{"name": f"n{i}", "value": i} for i in range(50)]).encode(),
               "html": b"<!DOCTYPE html><html><head><title>t</title></head><body><p>text</p></body></html>" * 4,
               "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8}
    found = [Magika().identify_bytes(content) for content in samples.values()]
    labels = [f.output.label for f in found]
    assert labels[0] == "python", labels
    return {"labels": np.array(labels), "scores": np.array([f.score for f in found])}


def swift_f0():
    """The pitch of a sound of 220 Hz, and of a voice. Confidences of the first are not compared: it has no noise, so they depend on
    rounding."""
    from swift_f0 import SwiftF0
    detector = SwiftF0(threads=1)
    tone = (0.5 * np.sin(2 * np.pi * 220 * np.arange(SECOND) / SECOND)).astype(np.float32)
    results = [detector.detect(sound, SECOND) for sound in (tone, voice(2))]
    middle = np.median(results[0].pitch_hz)
    assert abs(middle - 220) < 3, middle
    return {"tone": results[0].pitch_hz} | {name: getattr(results[1], name) for name in ("pitch_hz", "confidence", "loudness_db")}


def speechmos():
    """Scores of the quality of speech, by three of the package's metrics."""
    from speechmos import aecmos, dnsmos, plcmos
    np.random.seed(0)  # plcmos draws from numpy's generator
    sound = voice(10)
    scores = {"dnsmos": dnsmos.run(sound, SECOND, return_df=False), "plcmos": plcmos.run(sound, SECOND, return_df=False),
              "aecmos": aecmos.run({"lpb": sound, "mic": sound * 0.5, "enh": sound * 0.25}, SECOND, talk_type="st", return_df=False)}
    return {f"{metric} {name}": np.array(value, np.float64) for metric, found in scores.items() for name, value in found.items()
            if isinstance(value, (int, float, np.number))}


def nudenet():
    """A detector of objects, on a picture without any: its raw scores are compared."""
    from nudenet import NudeDetector
    detector = NudeDetector()
    picture = np.random.default_rng(0).integers(0, 255, (320, 320, 3)).astype(np.uint8)
    raw = detector.onnx_session.run(None, {detector.input_name: picture.transpose(2, 0, 1)[None].astype(np.float32) / 255})
    return {"found": np.array([len(detector.detect(picture))]), "raw": raw[0]}


def basic_pitch():
    """The notes of a sound."""
    import pathlib
    import basic_pitch as package
    from basic_pitch.inference import Model, predict
    from scipy.io import wavfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "notes.wav")
        rate = 22050
        notes = [np.sin(2 * np.pi * hertz * np.arange(rate) / rate) * 0.4 for hertz in (261.63, 329.63, 392.0)]
        wavfile.write(path, rate, np.concatenate(notes).astype(np.float32))
        model = Model(pathlib.Path(package.__file__).parent / "saved_models" / "icassp_2022" / "nmp.onnx")
        output, _, events = predict(path, model)
    pitches = sorted({event[2] for event in events})
    assert {60, 64, 67} <= set(pitches), pitches
    return {**{f"output {name}": value for name, value in output.items()}, "pitches": np.array(pitches)}


def silero_vad():
    """The package's models, streamed. Its own code needs PyTorch."""
    import importlib.util
    import onnxruntime
    folder = os.path.join(importlib.util.find_spec("silero_vad").submodule_search_locations[0], "data")
    results, sound = {}, voice(3)
    for name in ("silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_half.onnx", "silero_vad_op18_ifless.onnx"):
        session = onnxruntime.InferenceSession(os.path.join(folder, name), providers=["CPUExecutionProvider"])
        takes_rate = "sr" in [i.name for i in session.get_inputs()]
        state, context, probabilities = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32), []
        for start in range(0, len(sound) - 512, 512):
            chunk = np.concatenate([context, sound[None, start:start + 512]], axis=1)
            feed = {"input": chunk, "state": state} | ({"sr": np.array(SECOND, np.int64)} if takes_rate else {})
            probability, state = session.run(None, feed)
            context = chunk[:, -64:]
            probabilities.append(probability[0, 0])
        results[name], results[f"{name} state"] = np.array(probabilities), state
    return results


def fastembed():
    """Embeddings by an encoder that is generated here, with its tokenizer: the package downloads its models."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    with tempfile.TemporaryDirectory() as folder:
        write_encoder(folder)
        TextEmbedding.add_custom_model(model="generated/encoder", pooling=PoolingType.MEAN, normalization=True,
                                       sources=ModelSource(hf="generated/encoder"), dim=32, model_file="model.onnx")
        model = TextEmbedding("generated/encoder", specific_model_path=folder, threads=1)
        found = list(model.embed(["one network on all devices", "a plan", "which device runs which node of the network"]))
    return {"embeddings": np.array(found)}


WORDS = "[PAD] [UNK] [CLS] [SEP] one network on all devices a plan which device runs node of the".split()


def write_encoder(folder):
    """An attention layer and a residual block with random weights, and a tokenizer of words."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    for name, content in {"tokenizer_config.json": {"model_max_length": 64, "pad_token": "[PAD]"}, "config.json": {"pad_token_id": 0},
                          "special_tokens_map.json": {"pad_token": "[PAD]", "unk_token": "[UNK]"}}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    rng, wide = np.random.default_rng(0), 32
    weights = {"table": (len(WORDS), wide), "q": (wide, wide), "k": (wide, wide), "v": (wide, wide), "up": (wide, 64), "down": (64, wide)}
    initializers = [numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name)
                    for name, shape in weights.items()]
    initializers += [numpy_helper.from_array(np.ones(wide, np.float32), "scale"), numpy_helper.from_array(np.array([1], np.int64), "axis"),
                     numpy_helper.from_array(np.array(1, np.float32), "one"), numpy_helper.from_array(np.array(-1e4, np.float32), "far")]
    node = helper.make_node
    nodes = [node("Gather", ["table", "input_ids"], ["x"]), node("MatMul", ["x", "q"], ["xq"]), node("MatMul", ["x", "k"], ["xk"]),
             node("MatMul", ["x", "v"], ["xv"]), node("Transpose", ["xk"], ["xkt"], perm=[0, 2, 1]), node("MatMul", ["xq", "xkt"], ["raw"]),
             node("Cast", ["attention_mask"], ["kept"], to=TensorProto.FLOAT), node("Sub", ["one", "kept"], ["left"]),
             node("Mul", ["left", "far"], ["bias"]), node("Unsqueeze", ["bias", "axis"], ["biases"]), node("Add", ["raw", "biases"], ["masked"]),
             node("Softmax", ["masked"], ["share"], axis=-1), node("MatMul", ["share", "xv"], ["mixed"]), node("Add", ["x", "mixed"], ["sum"]),
             node("LayerNormalization", ["sum", "scale"], ["normal"]), node("MatMul", ["normal", "up"], ["high"]), node("Gelu", ["high"], ["bent"]),
             node("MatMul", ["bent", "down"], ["low"]), node("Add", ["normal", "low"], ["last_hidden_state"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "encoder", [info("input_ids", TensorProto.INT64, ["batch", "length"]),
                                                 info("attention_mask", TensorProto.INT64, ["batch", "length"])],
                              [info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", wide])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, os.path.join(folder, "model.onnx"))


CASES = {f.__name__: f for f in (rapidocr, magika, swift_f0, speechmos, nudenet, basic_pitch, silero_vad, fastembed)}


def main():
    name, engine, path = sys.argv[1:]
    if engine == "cleave":
        import cleave.onnxruntime
        cleave.onnxruntime.install(**json.loads(os.environ.get("CLEAVE_PACKAGE_OPTIONS", "{}")))
    results = CASES[name]()
    import onnxruntime
    np.savez(path, **results)
    print(f"\n{onnxruntime.__name__}")


if __name__ == "__main__":
    main()
