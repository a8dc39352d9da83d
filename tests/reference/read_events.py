"""What TensorBoard itself shows of a run, beside its metrics.jsonl.

    read_events.py RUN_FOLDER

Leaves with 1 where they differ. Both of TensorBoard's readers are asked, as its pages ask them.
"""

import json
import math
import pathlib
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import tensorboard.program

TAGS = {"loss": "loss", "norm": "norm", "lr": "lr", "tokens_per_s": "tokens_per_s", "loss/held-out": "val_loss"}


def written(folder):
    """[(batch, value)] of each tag, as metrics.jsonl has them."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if "batch" in line and "event" not in line]
    return {tag: [(line["batch"], np.float32(math.nan if line[key] is None else line[key]))
                  for line in lines if key in line] for tag, key in TAGS.items()}


def shown(url, tag):
    """[(step, value)] as the page of scalars gets them; nothing where there are none."""
    try:
        with urllib.request.urlopen(f"{url}data/plugin/scalars/scalars?run=.&tag={tag.replace('/', '%2F')}") as answer:
            points = json.load(answer)
    except urllib.error.HTTPError:
        return []
    return [(step, np.float32(math.nan if value == "NaN" else value)) for _, step, value in points]


def same(ours, theirs):
    return [step for step, _ in ours] == [step for step, _ in theirs] and np.array_equal(
        [value for _, value in ours], [value for _, value in theirs], equal_nan=True)


def compare(folder, load_fast):
    board = tensorboard.program.TensorBoard()
    board.configure(argv=["tensorboard", "--logdir", str(folder), "--port", "0", "--load_fast", load_fast,
                          "--reload_interval", "1"])
    url, expected = board.launch(), written(folder)
    until = time.monotonic() + 60
    while True:  # it reads in the background
        found = {tag: shown(url, tag) for tag in expected}
        if all(same(expected[tag], found[tag]) for tag in expected) or time.monotonic() > until:
            break
        time.sleep(0.2)
    for tag, points in expected.items():
        agrees = same(points, found[tag])
        print(f"load_fast={load_fast} {tag}: {len(points)} points   {'agree' if agrees else 'differ'}")
        if not agrees:
            print(f"  written {points}\n  shown   {found[tag]}")
    return all(same(expected[tag], found[tag]) for tag in expected)


def main():
    folder = pathlib.Path(sys.argv[1])
    results = [compare(folder, load_fast) for load_fast in ("false", "true")]
    sys.stdout.flush()
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
