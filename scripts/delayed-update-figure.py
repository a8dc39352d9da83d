#!/usr/bin/env python3
"""Draws the figure of scripts/delayed-update-figure: loss of a synchronous and of a delayed run, as SVG on stdout.

Reads the metrics.jsonl of both runs (doc/metrics.md). Needs Python's standard library alone.
"""
import argparse
import html
import json
import math
import sys
from typing import NamedTuple

WINDOW = 25  # batches around it that a point of the training curve is the mean of
STEP = 5  # a point every so many batches; scripts/delayed-update-figure asks for WINDOW + STEP at least
NAMES = ("synchronous", "delayed")
WIDTH, HEIGHT = 800, 610

STYLE = """
text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #24292f; }
.title { font-weight: bold; font-size: 15px; }
.caption { font-size: 12px; fill: #57606a; }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.page { fill: #ffffff; }
.axis { stroke: #8c959f; fill: none; } .grid { stroke: #d8dee4; } .start { stroke: #8c959f; stroke-dasharray: 4 4; }
.train { fill: none; stroke-width: 1.2; } .held { fill: none; stroke-width: 2.4; }
.synchronous { stroke: #0550ae; } .delayed { stroke: #d4500a; } .difference { stroke: #57606a; }
.delayed.train, .delayed.held { stroke-dasharray: 6 3; }
.dot { stroke-width: 1.6; fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .caption { fill: #9aa4af; } .page, .dot { fill: #0d1117; }
  .grid { stroke: #2b323b; } .synchronous { stroke: #6cb6ff; } .delayed { stroke: #ffa657; }
  .difference { stroke: #9aa4af; }
}
"""


class Run(NamedTuple):
    """Loss by batch, smoothed, and held-out loss by updates applied."""
    train: list
    held: dict


class Frame(NamedTuple):
    """A panel: the rectangle it fills, and the values at its edges."""
    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple
    y_range: tuple

    def x(self, value):
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value):
        low, high = self.y_range
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)


def read_run(path):
    """The run that a metrics.jsonl tells of."""
    losses, held = [], {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "event" in line:
                continue
            if "val_loss" in line:
                held[line["updates_applied"]] = line["val_loss"]
            else:
                losses.append(line["loss"])
    if len(losses) < WINDOW + STEP or not held or None in losses or None in held.values():
        sys.exit(f"delayed-update-figure.py: error: '{path}' can't be drawn ({len(losses)} batches and {len(held)} "
                 f"held-out losses, or one that is not finite); give a run of {WINDOW + STEP} batches or more")
    ends = range(WINDOW, len(losses) + 1, STEP)
    return Run([(end - WINDOW // 2, math.fsum(losses[end - WINDOW:end]) / WINDOW) for end in ends], held)


def ticks(low, high, wanted):
    """Round values between low and high, about as many as wanted."""
    rough = (high - low) / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def text(x, y, words, kind="", more=""):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{more}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def curve(frame, points, kind):
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{path}"/>'


def dots(frame, points, kind):
    return [f'<circle class="dot {kind}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3"/>' for x, y in points]


def panel(frame, y_title, y_format, y_wanted):
    """Grid, axes and what stands at a panel's left."""
    parts = []
    for value in ticks(*frame.y_range, y_wanted):
        parts.append(line(frame.left, frame.y(value), frame.right, frame.y(value), "grid"))
        parts.append(text(frame.left - 8, frame.y(value) + 4, y_format.format(value) if value else "0", "end"))
    middle = (frame.top + frame.bottom) / 2
    turned = f' transform="rotate(-90 18 {middle:.1f})"'
    parts.append(text(18, middle, y_title, "middle", turned))
    parts.append(f'<path class="axis" d="M{frame.left} {frame.top}V{frame.bottom}H{frame.right}"/>')
    return parts


def legend(left, top):
    parts = []
    for row, name in enumerate(NAMES):
        for column, (kind, words) in enumerate((("train", f"{name}, training"), ("held", f"{name}, held out"))):
            x, y = left + 190 * column, top + 22 * row
            parts.append(line(x, y, x + 30, y, f"{kind} {name}"))
            if kind == "held":
                parts.append(f'<circle class="dot {name}" cx="{x + 15}" cy="{y}" r="3"/>')
            parts.append(text(x + 38, y + 4, words))
    return parts


def figure(runs, start, facts):
    """The whole drawing. `start`: the first delayed update; `facts`: lines below it."""
    updates = max(max(run.held) for run in runs)
    shown = [y for run in runs for _, y in run.train] + [y for run in runs for y in run.held.values()]
    margin = 0.05 * (max(shown) - min(shown))
    both = sorted(set(runs[0].held) & set(runs[1].held))
    differences = [(t, runs[1].held[t] - runs[0].held[t]) for t in both]
    reach = 1.2 * max(max(abs(d) for _, d in differences), 1e-3)
    losses = Frame(70, 50, WIDTH - 20, 335, (0, updates), (min(shown) - margin, max(shown) + margin))
    apart = Frame(70, 365, WIDTH - 20, 465, (0, updates), (-reach, reach))

    parts = [text(losses.left, 30, "Delayed parameter update: the same model, with and without", "title")]
    parts += panel(losses, "loss, nats a byte", "{:.1f}", 6)
    parts += panel(apart, "difference", "{:+.2f}", 4)
    for value in ticks(0, updates, 10):
        parts.append(text(apart.x(value), apart.bottom + 18, f"{value:.0f}", "middle"))
    parts.append(text((apart.left + apart.right) / 2, apart.bottom + 38, "updates", "middle"))
    for frame in (losses, apart):
        parts.append(line(frame.x(start), frame.top, frame.x(start), frame.bottom, "start"))
    parts.append(text(losses.x(start) + 6, losses.bottom - 8, f"delayed from update {start} on", "caption"))
    parts.append(line(apart.left, apart.y(0), apart.right, apart.y(0), "axis"))
    for name, run in zip(NAMES, runs):
        parts.append(curve(losses, run.train, f"train {name}"))
    for name, run in zip(NAMES, runs):
        held = sorted(run.held.items())
        parts += [curve(losses, held, f"held {name}"), *dots(losses, held, name)]
    parts += [curve(apart, differences, "held difference"), *dots(apart, differences, "difference")]
    parts += legend(WIDTH - 400, losses.top + 20)
    for row, words in enumerate(facts):
        parts.append(text(losses.left, apart.bottom + 62 + 17 * row, words, "caption"))
    label = "Loss by update of a synchronous run and of one with delayed updates"
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img" aria-label="{label}">')
    page = f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("synchronous", help="metrics.jsonl of the run without delay")
    parser.add_argument("delayed", help="metrics.jsonl of the run with it")
    parser.add_argument("--start", type=int, required=True, help="the first delayed update")
    parser.add_argument("--fact", action="append", default=[], help="a line of the caption")
    arguments = parser.parse_args()
    runs = [read_run(arguments.synchronous), read_run(arguments.delayed)]
    reading = (f"Training: mean of {WINDOW} batches. Difference: held out, delayed minus synchronous, after as many "
               "applied updates.")
    sys.stdout.write(figure(runs, arguments.start, [*arguments.fact, reading]))


if __name__ == "__main__":
    main()
