#!/usr/bin/env python3
"""Runs commands with --json and checks that docs name every key of their objects.

Usage: json_keys.py PROGRAM REPOSITORY
A key counts as named when it stands in backquotes in the part of the document that is about the command.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

TINY = "--set epochs=2 --set data.samples=50 --set data.test_samples=20"
LIFE = "--set model.update=[16,8,4,2,1] --set model.kernels=8 --set epochs=2"

# (document, what the part starts with, command); commands run in this order in one folder.
CASES = [
    ("cli", "## train", f"train kan-hello {TINY} --out run --profile"),
    ("cli", "## train", f"train kan-hello {TINY} --out all --seeds 2"),
    ("cli", "## train", f"train game-of-life-small {LIFE} --out life"),
    ("cli", "## train", "train karate --set epochs=3 --set data.curve=true --out karate"),
    ("cli", "## train", "train rewrite --set data.samples=40 --set data.validation_samples=10 --set data.test_samples=10"
                        " --set data.large_samples=5 --set epochs=1 --out rewrite"),
    ("cli", "## train", "resume run"),
    ("cli", "## eval", "eval run --predictions p.csv"),
    ("cli", "## eval", "eval run --data rows.csv"),
    ("cli", "## eval", "eval life"),
    ("cli", "## eval", "eval run/model.safetensors --data rows.csv --predictions p.csv"),
    ("cli", "## predict", "predict run --data rows.csv --out p.csv"),
    ("cli", "## check", f"check kan-hello {TINY} --max-elements 20"),
    ("cli", "## check", f"check kan-hello {TINY} --max-elements 20 --device gpu"),
    ("formulas", "## JSON", "formula run --effort 2000"),
    ("cli", "gradloom bench kan --widths", "bench kan --widths 4,4,2 --seconds 0.01 --profile"),
    ("cli", "gradloom bench kan --widths", "bench kan --widths 4,4,2 --seconds 0.01 --device gpu"),
    ("cli", "gradloom bench logic", "bench logic --recipe checkerboard-small --threads 1 --seconds 0.01"),
    ("cli", "gradloom bench graph", "bench graph --nodes 50 --degree 4 --features 16 --seconds 0.01"),
    ("cli", "gradloom bench graph", "bench graph --recipe karate --seconds 0.01"),
    ("cli", "gradloom bench circuit", "bench circuit --width 128 --height 128 --seconds 0.01"),
    ("cli", "## recipes", "recipes"),
    ("cli", "## recipes", "recipes show kan-hello"),
    ("cli", "## recipes", "devices"),
    ("circuit", "gradloom run-circuit small.json", "run-circuit life --random 0.3 --width 50 --height 30 --steps 2 --out end.rle"),
    ("circuit", "gradloom export circuit.json --format verilog", "export life --format verilog --out life.v --verify"),
    ("splines", "## Exports", "export run --format efficient-kan --out e.safetensors"),
    ("ged", "gradloom bench ged", "bench ged --graphs 6 --nodes 5 --seconds 0.01"),
]
NAMED_LISTS = ("devices", "circuits", "recipes", "outputs", "inputs", "edges")  # lists of objects whose keys are documented, too


def part(text, start):
    """From the line that starts so to the next heading, or of a snippet to the next snippet."""
    at = re.search("^" + re.escape(start), text, re.M)
    if not at:
        sys.exit(f"the documents have no part '{start}'")
    rest = text[at.end():]
    end = re.search(r"^## " if start.startswith("#") else r"^(## |```sh$)", rest, re.M)
    return rest[:end.start()] if end else rest


def keys(found):
    yield from found
    for name in NAMED_LISTS:
        for item in found.get(name, []):
            yield from item if isinstance(item, dict) else ()


def main():
    program, root = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    missing = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "rows.csv"), "w", encoding="utf-8") as table:
            table.write("x1,x2\n0.1,0.2\n0.3,0.4\n")
        for document, start, command in CASES:
            with open(os.path.join(root, "docs", document + ".md"), encoding="utf-8") as f:
                words = part(f.read(), start)
            result = subprocess.run([program, *command.split(), "--json"], cwd=folder, capture_output=True, text=True, timeout=300)
            if result.returncode == 3:
                print(f"skipped (there is no device): gradloom {command}")
                skipped += 1
                continue
            if result.returncode != 0:
                sys.exit(f"gradloom {command}\n  exit code {result.returncode}\n{result.stderr}")
            for key in sorted(set(keys(json.loads(result.stdout)))):
                if f"`{key}`" not in words:
                    missing += 1
                    print(f"docs/{document}.md, '{start}': `{key}` of gradloom {command} is not named")
    print(f"{len(CASES) - skipped} commands, {skipped} skipped, {missing} keys missing")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
