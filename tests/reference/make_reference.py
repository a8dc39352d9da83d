#!/usr/bin/env python3
"""Make the reference files of tests/reference/ with PyTorch.

Each file holds one small GPT-2 of Hugging Face transformers with random
weights, and what PyTorch computes with it: logits, loss and gradients of the
first batch, and ten AdamW updates. The weights are exact in float32, all
arithmetic is float64, the results are rounded to float32 once, at the end.

    make_reference.py            write gpt2_a.h5 and gpt2_b.h5
    make_reference.py --check    compute again, compare with the files

Requirements: pip install torch transformers h5py numpy
"""

import argparse
import pathlib
import re
import sys

import h5py
import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = pathlib.Path(__file__).parent
UPDATES = 10
IGNORED = -1       # a target that does not count, in the files
TOLERANCE = 1e-6   # of --check, relative to the largest value of a dataset

SHAPES = {
    "gpt2_a": dict(vocabulary=65, context=16, width=32, heads=4, layers=2,
                   batch=3, tied=1),
    "gpt2_b": dict(vocabulary=257, context=33, width=48, heads=3, layers=3,
                   batch=2, tied=0),
}
SEEDS = {"gpt2_a": 1, "gpt2_b": 2}
IGNORED_FRACTION = {"gpt2_a": 0.2, "gpt2_b": 0.0}
LEARNING_RATES = {
    "gpt2_a": np.full(UPDATES, 1e-3),
    "gpt2_b": 1e-3 * np.arange(1, UPDATES + 1) / UPDATES,
}
HYPER = dict(updates=UPDATES, beta1=0.9, beta2=0.95, eps=1e-8,
             weight_decay=0.1, clip=1.0, layer_norm_eps=1e-5)

# Modules of transformers and their names in kozero. The first four are
# Conv1D, which keeps its weight as [in, out]; kozero has [out, in].
RENAMED = {"attn.c_attn": "attn.qkv", "attn.c_proj": "attn.proj",
           "mlp.c_fc": "mlp.fc", "mlp.c_proj": "mlp.proj"}


def kozero_name(name):
    """transformer.h.0.attn.c_attn.bias -> h.0.attn.qkv.bias"""
    name = name.removeprefix("transformer.")
    pattern = "|".join(map(re.escape, RENAMED))
    return re.sub(pattern, lambda match: RENAMED[match[0]], name)


def kozero_layout(name, tensor):
    """Transposes Conv1D weights (both ways); a view, not a copy."""
    is_conv1d = re.search(r"\.(qkv|proj|fc)\.weight$", name)
    return tensor.t() if is_conv1d else tensor


def make_model(shape):
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=shape["vocabulary"], n_positions=shape["context"],
        n_embd=shape["width"], n_head=shape["heads"],
        n_layer=shape["layers"], activation_function="gelu_new",
        layer_norm_epsilon=HYPER["layer_norm_eps"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        tie_word_embeddings=bool(shape["tied"]), use_cache=False,
        bos_token_id=None, eos_token_id=None,
        attn_implementation="eager"))
    return model.double().train()


def named_parameters(model):
    """{name in kozero: parameter of torch}; a tied head appears once."""
    return {kozero_name(name): parameter
            for name, parameter in model.named_parameters()}


def randomize(parameters, rng):
    """Random values, exact in float32, such that every term counts.

    A small ln_f.weight puts the gradient norm near 1, so that some updates
    are clipped and some are not.
    """
    for name, parameter in sorted(parameters.items()):
        target = kozero_layout(name, parameter.data)
        value = rng.standard_normal(target.shape)
        if target.dim() == 2:
            value *= target.shape[-1] ** -0.5
        else:
            value *= 0.2
            if re.search(r"ln_\w+\.weight$", name):
                value += 0.4 if name == "ln_f.weight" else 1.0
        target.copy_(torch.from_numpy(value.astype(np.float32)))


def make_batches(shape, ignored_fraction, rng):
    """Tokens and next-token targets, both int32 [UPDATES, B, T]."""
    text = rng.integers(
        shape["vocabulary"],
        size=(UPDATES, shape["batch"], shape["context"] + 1),
        dtype=np.int32)
    last = shape["vocabulary"] - 1
    text[:, 0, :3] = 0, last, 0  # both ends of the vocabulary, both ways
    tokens, targets = text[..., :-1].copy(), text[..., 1:].copy()
    targets[rng.random(targets.shape) < ignored_fraction] = IGNORED
    return tokens, targets


def forward(model, tokens, targets):
    """Logits and mean loss. The loss of transformers would be float32."""
    logits = model(torch.from_numpy(tokens).long()).logits
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(targets).long().flatten(),
        ignore_index=IGNORED)
    return logits, loss


def tensors(group, values):
    """{group/name: array in kozero's layout}"""
    return {f"{group}/{name}":
            kozero_layout(name, value).detach().numpy().copy()
            for name, value in values.items()}


def make_optimizer(parameters):
    """AdamW that decays tensors of rank 2 or more, and only those."""
    decayed = [p for p in parameters if p.dim() >= 2]
    others = [p for p in parameters if p.dim() < 2]
    return torch.optim.AdamW(
        [dict(params=decayed, weight_decay=HYPER["weight_decay"]),
         dict(params=others, weight_decay=0.0)],
        betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["eps"])


def compute(name):
    """All datasets of one file, {path: array}."""
    shape = SHAPES[name]
    rng = np.random.default_rng(SEEDS[name])
    model = make_model(shape)
    parameters = named_parameters(model)
    randomize(parameters, rng)
    tokens, targets = make_batches(shape, IGNORED_FRACTION[name], rng)
    data = tensors("parameters", parameters)

    optimizer = make_optimizer(parameters.values())
    losses, norms = [], []
    for update, lr in enumerate(LEARNING_RATES[name]):
        logits, loss = forward(model, tokens[update], targets[update])
        optimizer.zero_grad()
        loss.backward()
        if update == 0:
            data |= {"logits": logits.detach().numpy().copy(),
                     "loss": np.array(loss.item())}
            data |= tensors("gradients", {
                name: parameter.grad
                for name, parameter in parameters.items()})
        norm = torch.nn.utils.clip_grad_norm_(
            parameters.values(), max_norm=HYPER["clip"])
        for group in optimizer.param_groups:
            group["lr"] = float(lr)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())

    moments = {name: optimizer.state[parameter]
               for name, parameter in parameters.items()}
    data |= tensors("adamw/parameters", parameters)
    data |= tensors("adamw/m", {
        name: state["exp_avg"] for name, state in moments.items()})
    data |= tensors("adamw/v", {
        name: state["exp_avg_sq"] for name, state in moments.items()})
    data |= {"adamw/losses": np.array(losses),
             "adamw/norms": np.array(norms)}

    data = {path: value.astype("<f4") for path, value in data.items()}
    data["adamw/lr"] = LEARNING_RATES[name].astype("<f8")
    data["tokens"] = tokens.astype("<i4")
    data["targets"] = targets.astype("<i4")
    return data


def attributes(name):
    return SHAPES[name] | HYPER


def write(name, data):
    path = FOLDER / f"{name}.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update(attributes(name))
        for dataset, value in data.items():
            file[dataset] = value
    print(f"{path.name}: {len(data)} datasets, {path.stat().st_size} bytes")
    print(f"  losses {data['adamw/losses']}\n  norms  {data['adamw/norms']}")


def read(name):
    """Attributes and datasets of a file."""
    data = {}

    def visit(path, item):
        if isinstance(item, h5py.Dataset):
            data[path] = item[()]

    with h5py.File(FOLDER / f"{name}.h5", "r") as file:
        file.visititems(visit)
        return dict(file.attrs), data


def difference(expected, actual):
    """Largest difference, relative to the largest expected value."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return np.inf
    expected, actual = np.float64(expected), np.float64(actual)
    largest = np.abs(expected - actual).max()
    if largest == 0:
        return 0.0
    relative = largest / np.abs(expected).max()
    return relative if np.isfinite(relative) else np.inf


def check(name, data):
    """True if the file holds what was computed; prints by kind."""
    stored_attributes, stored = read(name)
    good = (stored_attributes == attributes(name)
            and stored.keys() == data.keys())
    print(f"{name}.h5: attributes and names", "agree" if good else "DIFFER")
    kinds = {}
    for path in stored.keys() & data.keys():
        kind = re.sub(r"(parameters|gradients|m|v)/.*", r"\1", path)
        worst = difference(stored[path], data[path])
        kinds[kind] = max(kinds.get(kind, 0.0), worst)
    for kind, worst in sorted(kinds.items()):
        print(f"  {kind:18} {worst:.1e}")
    return good and all(worst <= TOLERANCE for worst in kinds.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true",
                        help="compare with the files, write nothing")
    arguments = parser.parse_args()
    good = True
    for name in SHAPES:
        data = compute(name)
        if arguments.check:
            good = check(name, data) and good
        else:
            write(name, data)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
