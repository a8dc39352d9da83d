#!/usr/bin/env python3
"""Read a checkpoint, and compute again what its run said of it.

Written from the pages of doc/ alone: checkpoints.md (files), numerics.md (state_hash, loss), data-order.md (random
numbers, windows, batches), gpt2.md (forward, first values), metrics.md and deck.md. All sums are float64. It compares

    each dataset with its checksums, and the state with state_hash
    each tensor with what tensors.h5 shows
    the held-out loss of the checkpoint's update with that in metrics.jsonl
    the loss of the batch that comes next with that in metrics.jsonl
    the part of metrics.jsonl that the checkpoint was saved with with its hash
    at update 0 every tensor with its first values

and says "differ", with exit status 1, where a loss is off by more than 1e-5, in runs of 16 bits 2e-2, relative, where
a first value is by more than the last bit of a float32, and where a checksum or hash is at all.
"""

import argparse
import functools
import json
import math
import pathlib
import re
import sys

import h5py
import numpy as np
import xxhash

EXAMPLES = """examples:
  read_checkpoint.py runs/quickstart/checkpoints/latest
  read_checkpoint.py runs/quickstart/checkpoints/step-00000800 --train 0 17 --held-out 3
  read_checkpoint.py tests/reference/checkpoints-v1/untied/step-00000004 \\
    --metrics tests/reference/checkpoints-v1/untied/metrics.jsonl --data tests/reference/checkpoints-v1/tokens.bin
"""

LOSS_TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2, "fp16": 2e-2}
FIRST_VALUES, SHUFFLE = 1, 2  # purposes of random numbers
HASHED_AT_ONCE = 1 << 16      # elements
LLMC_TYPES = {20240520: "<u2", 20240801: "<u4"}  # by the first int32 of the file
LLMC_HEADER_BYTES = 1024


# Files: doc/checkpoints.md

def read_deck(text):
    """{"section.key": value as a text} of a resolved deck: a key a line, two spaces a level, comments at the end."""
    deck, path = {}, []
    for line in text.splitlines():
        indent, key, value = re.fullmatch(r"( *)([a-z_0-9]+):\s*(.*)", line).groups()
        path[len(indent) // 2 :] = [key]
        quoted = value.startswith('"')
        deck[".".join(path)] = json.JSONDecoder().raw_decode(value)[0] if quoted else re.sub(r"\s*#.*", "", value)
    return deck


def stored_bytes(dataset, values):
    """Values as they stand in the file. h5py widens bfloat16 to float32, of which it is the upper half."""
    if dataset.id.get_type().get_size() < values.dtype.itemsize:
        values = (np.ascontiguousarray(values).view("<u4") >> 16).astype("<u2")
    return np.ascontiguousarray(values)


def damaged(dataset):
    """Whether a checksum of a dataset differs."""
    stored, step = stored_bytes(dataset, dataset[()]), int(dataset.attrs["checksum_elements"])
    digests = [xxhash.xxh3_128_intdigest(stored[i : i + step].tobytes()) for i in range(0, stored.size, step)]
    words = [word for digest in digests for word in (digest >> 64, digest & (1 << 64) - 1)]
    return words != [int(word) for word in dataset.attrs["xxh3_128"].reshape(-1)]


def read_tensors(folder):
    """{kind: {name: whole array}} of all rank files, and the names of damaged datasets. Kinds are master, m, v."""
    tensors, seen, damages = {}, {}, []
    for path in sorted(folder.glob("rank-*.h5")):
        with h5py.File(path) as file:
            for name, group in file.items():
                for kind, part in group.items():
                    whole = tensors.setdefault(kind, {}).setdefault(name, np.empty(part.attrs["shape"], part.dtype))
                    begin = int(part.attrs["begin"])
                    whole.reshape(-1)[begin : begin + part.size] = part
                    seen[kind, name] = seen.get((kind, name), 0) + part.size
                    damages += [f"{path.name}/{name}/{kind}"] if damaged(part) else []
    for (kind, name), size in seen.items():
        if size != tensors[kind][name].size:
            sys.exit(f"{folder}: {name}/{kind} has {size} elements of {tensors[kind][name].size}")
    return tensors, damages


def shown_otherwise(folder, tensors):
    """What tensors.h5 shows in another way than the rank files have it; None where there is no such file."""
    if not (folder / "tensors.h5").exists():
        return None
    with h5py.File(folder / "tensors.h5") as file:
        groups = {kind: file["parameters"] if kind == "master" else file["optimizer"][kind] for kind in tensors}
        shown = {(kind, name) for kind in tensors for name in groups[kind]}
        wrong = shown ^ {(kind, name) for kind in tensors for name in tensors[kind]}
        for kind, name in shown - wrong:
            ours, theirs = tensors[kind][name], groups[kind][name]
            if theirs.shape != ours.shape or theirs[()].tobytes() != ours.tobytes() or not theirs.is_virtual:
                wrong.add((kind, name))
    return sorted(f"{name}/{kind}" for kind, name in wrong)


def model_order(layers, version):
    """Names of all tensors in model order; lm_head.weight may be absent."""
    vectors = ["weight", "bias"]
    if version == 1:
        attention = [f"attn.qkv.{part}" for part in vectors]
    else:
        attention = [f"attn.{of}.{part}" for part in vectors for of in "qkv"]
    layer = [f"ln_1.{part}" for part in vectors] + attention
    layer += [f"{of}.{part}" for of in ("attn.proj", "ln_2", "mlp.fc", "mlp.proj") for part in vectors]
    return (["wte.weight", "wpe.weight"] + [f"h.{i}.{name}" for i in range(layers) for name in layer]
            + ["ln_f.weight", "ln_f.bias", "lm_head.weight"])


def state_hash(tensors, order, version):
    """doc/numerics.md, "state_hash"; version 1 hashed the elements as one stream."""
    whole = xxhash.xxh3_128()
    for name in (name for name in order if name in tensors["master"]):
        for kind in ("master", "m", "v"):
            array = tensors[kind][name].reshape(-1).astype("<f4")
            if version == 1:
                whole.update(array.tobytes())
                continue
            for begin in range(0, array.size, HASHED_AT_ONCE):
                whole.update(xxhash.xxh3_128(array[begin : begin + HASHED_AT_ONCE].tobytes()).digest())
    return whole.hexdigest()


def of_today(tensors):
    """Tensors of version 1 under the names and in the layout of version 2."""
    result = {}
    for name, value in tensors.items():
        if ".attn.qkv." in name:
            for of, third in zip("qkv", np.split(value, 3)):
                result[name.replace("qkv", of)] = third
        else:
            result[name] = value.T if name.endswith(".proj.weight") else value
    return result


# Random numbers and the order of data: doc/data-order.md

def philox(counter, key):
    """Philox4x32-10 of four counter words, ints or arrays of uint64 that hold 32 bits, and two key words."""
    a, b, c, d = (np.asarray(word, np.uint64) for word in counter)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for i in range(10):
        k0, k1 = (np.uint64((k + i * step) & 0xFFFFFFFF) for k, step in zip(key, (0x9E3779B9, 0xBB67AE85)))
        p, q = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = q >> half ^ b ^ k0, q & low, p >> half ^ d ^ k1, p & low
    return a, b, c, d


def random_words(seed, purpose, epoch, stream, index):
    index = np.asarray(index, np.uint64)
    counter = index & np.uint64(0xFFFFFFFF), index >> np.uint64(32) | np.uint64(purpose << 16), epoch, stream
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF))


def normal(seed, stream, index):
    w = random_words(seed, FIRST_VALUES, 0, stream, index)
    u = ((w[0] << np.uint64(32) | w[1]) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * w[2].astype(np.float64) * 2.0**-32)


def window_of_sample(seed, windows, sample):
    """The window that a sample holds: a Feistel network that walks until it is inside."""
    epoch, place = divmod(sample, windows)
    n_high = -(-(windows - 1).bit_length() // 2)
    n_low = (windows - 1).bit_length() - n_high
    while True:
        low, high = place & (1 << n_low) - 1, place >> n_low
        for r in range(0, 32, 2):
            high ^= int(random_words(seed, SHUFFLE, epoch, r, low)[0]) & (1 << n_high) - 1
            low ^= int(random_words(seed, SHUFFLE, epoch, r + 1, high)[0]) & (1 << n_low) - 1
        place = high << n_low | low
        if place < windows:
            return place


def read_tokens(path, kind):
    """The ids of a token file, not copied. kind is a value of data.format."""
    header = np.fromfile(path, "<i4", 3)  # magic, version, number of tokens
    if kind == "auto":
        is_llmc = header.size and int(header[0]) in LLMC_TYPES
        kind = "llmc" if is_llmc else "uint16" if path.endswith(".bin") else "text"
    if kind == "llmc":
        return np.memmap(path, LLMC_TYPES[int(header[0])], "r", LLMC_HEADER_BYTES, (int(header[2]),))
    return np.memmap(path, {"text": "u1", "uint16": "<u2", "uint32": "<u4"}[kind], "r")


def split_windows(tokens, context):
    """[windows, T + 1], where a window's last token is the next one's first."""
    return np.lib.stride_tricks.sliding_window_view(tokens, context + 1)[::context]


def read_windows(deck, train_file, validation_file):
    """The windows that are trained on, and those that are held out (none: an empty array)."""
    kind, context = deck["data.format"], int(deck["model.context"])
    windows = split_windows(read_tokens(train_file, kind), context)
    try:
        fraction = float(deck["data.validation"])
    except ValueError:
        return windows, split_windows(read_tokens(validation_file or deck["data.validation"], kind), context)
    if fraction == 0:
        return windows, windows[:0]
    exact = fraction * len(windows)
    rounded = math.floor(exact) + (exact - math.floor(exact) >= 0.5)
    trained = len(windows) - min(max(rounded, 1), len(windows) - 1)
    return windows[:trained], windows[trained:]


# GPT-2: doc/gpt2.md

def norm(x, p, name):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def attention(q, k, v, heads):
    """Causal, on [T, C] each."""
    q, k, v = (x.reshape(len(x), heads, -1).swapaxes(0, 1) for x in (q, k, v))  # [H, T, D]
    scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    result = weights / weights.sum(axis=2, keepdims=True) @ v
    return result.swapaxes(0, 1).reshape(result.shape[1], -1)


def gelu(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def window_loss(p, layers, heads, window):
    """Mean loss of the T targets of a window of T + 1 tokens; p is {name: float64 array}."""
    inputs, targets = window[:-1].astype(np.int64), window[1:].astype(np.int64)
    x = p["wte.weight"][inputs] + p["wpe.weight"]
    for h in (f"h.{layer}." for layer in range(layers)):
        normed = norm(x, p, h + "ln_1")
        q, k, v = (normed @ p[f"{h}attn.{of}.weight"].T + p[f"{h}attn.{of}.bias"] for of in "qkv")
        x = x + attention(q, k, v, heads) @ p[h + "attn.proj.weight"] + p[h + "attn.proj.bias"]
        hidden = gelu(norm(x, p, h + "ln_2") @ p[h + "mlp.fc.weight"].T + p[h + "mlp.fc.bias"])
        x = x + hidden @ p[h + "mlp.proj.weight"] + p[h + "mlp.proj.bias"]
    logits = norm(x, p, "ln_f") @ p.get("lm_head.weight", p["wte.weight"]).T
    largest = logits.max(axis=1)
    log_sum = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return (log_sum - logits[np.arange(len(targets)), targets]).mean()


def first_values(name, shape, layers, seed):
    """What a tensor holds at update 0, as float32; its shape is the stored one."""
    if len(shape) == 1:
        return np.full(shape, 1 if re.search(r"ln_\w+\.weight$", name) else 0, np.float32)
    fixed = {"wte.weight": (0, 0), "wpe.weight": (1, 0), "lm_head.weight": (2 + 12 * layers + 2, 0)}
    in_layer = {"attn.q": (2, 0), "attn.k": (2, 1), "attn.v": (2, 2), "attn.proj": (4, 0), "mlp.fc": (8, 0),
                "mlp.proj": (10, 0)}  # stream, third of q|k|v
    residual = name.endswith(".proj.weight")
    if name in fixed:
        stream, third = fixed[name]
    else:
        layer, of = re.fullmatch(r"h\.(\d+)\.(.*)\.weight", name).groups()
        stream, third = 2 + 12 * int(layer) + in_layer[of][0], in_layer[of][1]
    size = shape[0] * shape[1]
    z = normal(seed, stream, np.arange(third * size, (third + 1) * size, dtype=np.uint64))
    values = ((0.02 / math.sqrt(2 * layers) if residual else 0.02) * z).astype(np.float32)
    return values.reshape(shape[::-1]).T if residual else values.reshape(shape)


# What the run said: doc/metrics.md

def read_metrics(path):
    """The objects of a metrics.jsonl; a torn last line is left out."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def said(metrics, key, **where):
    """The value of a key in the last line that has it and the values given; None where there is none."""
    lines = (line for line in reversed(metrics) if all(line.get(k) == v for k, v in where.items()))
    return next((line[key] for line in lines if line.get(key) is not None), None)


class Report:
    """Prints what was found, and remembers whether all of it was right."""

    def __init__(self):
        self.good = True

    def line(self, what, text, good=True):
        self.good = self.good and bool(good)
        print(f"{what:<22} {text}{'' if good else '   differ'}")

    def loss(self, what, ours, theirs, tolerance):
        if theirs is None:
            return self.line(what, f"{ours:.9f}   metrics.jsonl has no such line")
        relative = abs(ours - theirs) / abs(theirs)
        self.line(what, f"{ours:.9f}   the run's {theirs:.9f}   {relative:.1e}", relative <= tolerance)


class Checkpoint:
    """A checkpoint, whole, in the names and layout of today."""

    def __init__(self, folder, report):
        with h5py.File(folder / "checkpoint.h5") as file:
            self.attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in file.attrs.items()}
            self.deck = read_deck(file["deck"][0].decode())
        self.version = int(self.attributes["format_version"])
        self.layers, self.heads = int(self.deck["model.layers"]), int(self.deck["model.heads"])
        self.seed = int(self.deck["run.seed"])
        stored, damages = read_tensors(folder)
        report.line("checksums", f"{len(stored['master'])} tensors of {self.attributes['ranks']} ranks"
                    + (f", damaged: {', '.join(damages)}" if damages else ""), not damages)
        otherwise = shown_otherwise(folder, stored)
        if otherwise is not None:
            report.line("tensors.h5", f"shows {sum(map(len, stored.values()))} arrays whole"
                        + (f", otherwise: {', '.join(otherwise)}" if otherwise else ""), not otherwise)
        ours = state_hash(stored, model_order(self.layers, self.version), self.version)
        report.line("state_hash", f"{ours}   stored {self.attributes['state_hash']}",
                    ours == self.attributes["state_hash"])
        self.tensors = stored if self.version > 1 else {kind: of_today(stored[kind]) for kind in stored}

    @functools.cached_property
    def parameters(self):
        return {name: value.astype(np.float64) for name, value in self.tensors["master"].items()}

    def loss(self, windows):
        """Mean over windows; all have as many targets."""
        return np.mean([window_loss(self.parameters, self.layers, self.heads, window) for window in windows])


def check_first_values(checkpoint, report):
    worst, good = 0.0, True
    for name, value in checkpoint.tensors["master"].items():
        expected = first_values(name, value.shape, checkpoint.layers, checkpoint.seed)
        off = np.abs(value.astype(np.float64) - expected)
        worst, good = max(worst, off.max()), good and (off <= np.spacing(np.abs(expected))).all()
        good = good and not checkpoint.tensors["m"][name].any() and not checkpoint.tensors["v"][name].any()
    report.line("first values", f"largest difference {worst:.1e}, m and v are 0", good)


def check_losses(checkpoint, metrics, trained, held_out, report):
    attributes, tolerance = checkpoint.attributes, LOSS_TOLERANCE[checkpoint.deck["precision.compute"]]
    batches, updates, size = (int(attributes[k]) for k in ("batches_seen", "updates_applied", "global_batch"))
    if len(held_out):
        seen = held_out[: int(checkpoint.deck["evaluate.batches"]) * size]
        report.loss("held-out loss", checkpoint.loss(seen),
                    said(metrics, "val_loss", batch=batches, updates_applied=updates), tolerance)
    samples = range(batches * size, (batches + 1) * size)
    windows = [window_of_sample(checkpoint.seed, len(trained), sample) for sample in samples]
    report.line("batch " + str(batches + 1), "windows " + " ".join(map(str, windows)))
    report.loss("its loss", checkpoint.loss(trained[windows]), said(metrics, "loss", batch=batches + 1), tolerance)


def check_mark(attributes, path, report):
    """The metrics that the checkpoint says it was saved with; older ones say nothing."""
    if "metrics_bytes" not in attributes:
        return
    size = int(attributes["metrics_bytes"])
    ours = xxhash.xxh3_128_hexdigest(path.read_bytes()[:size])
    report.line("metrics", f"{size} bytes, {ours}   stored {attributes['metrics_hash']}",
                ours == attributes["metrics_hash"])


def check_data(attributes, name, path, report):
    """The data file that the checkpoint says it was trained on; older ones say nothing."""
    if f"{name}_hash" not in attributes:
        return
    data = path.read_bytes()
    samples = [data] if len(data) <= 1 << 20 else [
        data[i * (len(data) - 16384) // 63:][:16384] for i in range(64)]
    ours = xxhash.xxh3_128_hexdigest(b"".join(samples))
    report.line(name.replace("_", " "), f"{len(data)} bytes, {ours}   stored {attributes[f'{name}_hash']}",
                ours == attributes[f"{name}_hash"] and len(data) == int(attributes[f"{name}_bytes"]))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path, help="a folder step-…, or …/latest")
    parser.add_argument("--data", help="the file of data.train, where it is not where the deck says")
    parser.add_argument("--validation", help="the same of data.validation")
    parser.add_argument("--metrics", type=pathlib.Path, help="metrics.jsonl (default: that of the checkpoint's run)")
    parser.add_argument("--train", type=int, nargs="+", default=[], metavar="W",
                        help="print the loss of these windows of the part that is trained on")
    parser.add_argument("--held-out", type=int, nargs="+", default=[], metavar="W",
                        help="the same of the part that is held out")
    return parser.parse_args()


def main():
    arguments, report = parse_arguments(), Report()
    folder = arguments.checkpoint.resolve()
    checkpoint = Checkpoint(folder, report)
    if checkpoint.attributes["updates_applied"] == 0:
        check_first_values(checkpoint, report)
    trained, held_out = read_windows(checkpoint.deck, arguments.data or checkpoint.deck["data.train"],
                                     arguments.validation)
    metrics_file = arguments.metrics or folder.parent.parent / "metrics.jsonl"
    check_mark(checkpoint.attributes, metrics_file, report)
    check_data(checkpoint.attributes, "training_data",
               pathlib.Path(arguments.data or checkpoint.deck["data.train"]), report)
    check_data(checkpoint.attributes, "validation_data",
               pathlib.Path(arguments.validation or checkpoint.deck["data.validation"]), report)
    metrics = read_metrics(metrics_file)
    check_losses(checkpoint, metrics, trained, held_out, report)
    for what, windows, asked in (("train", trained, arguments.train), ("held-out", held_out, arguments.held_out)):
        for w in asked:
            if not 0 <= w < len(windows):
                sys.exit(f"there is no {what} window {w} (there are {len(windows)}, from 0 on)")
            report.line(f"{what} window {w}", f"{checkpoint.loss(windows[w : w + 1]):.9f}")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
