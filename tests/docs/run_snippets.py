#!/usr/bin/env python3
"""Runs the shell snippets of README.md and docs/*.md, so that what they say stays true.

Usage: run_snippets.py PROGRAM REPOSITORY
Blocks marked ```cpp FILE must stand in that example, which other tests build and run.
Each file gets a folder of its own with the small files of write_samples(), and with every block marked ```json FILE.
In blocks marked ```sh every line that calls gradloom is run and must succeed; a block marked ```sh fails must end with
another exit code than 0. Lines that build or install are left to other tests, and are counted. So are lines with
mpirun, and the cmp behind them, where there is no Open MPI.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import local_mpi  # noqa: E402

FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```", re.S | re.M)
NEEDS_DATA = re.compile(r"kan-digits|tabular/")
NEEDS_MPI = re.compile(r"^(mpirun|cmp) ")


def commands(text):
    """(command, must_fail) of every line that calls the program; continuation lines are joined."""
    for language, note, body in FENCE.findall(text):
        if language != "sh":
            continue
        for line in body.replace("\\\n", " ").splitlines():
            line = line.split(" #")[0].strip()
            if line and not line.startswith("#"):
                yield line, "fails" in note


def strangers(text, root):
    """Blocks of C++ that do not stand in the file they name; blanks before lines do not matter."""
    def plain(code):
        return "\n".join(line.strip() for line in code.strip().splitlines())
    for language, note, body in FENCE.findall(text):
        if language == "cpp" and note.strip():
            with open(os.path.join(root, note.strip()), encoding="utf-8") as f:
                if plain(body) not in plain(f.read()):
                    yield f"this does not stand in {note.strip()}:\n{body}"


def write_samples(folder):
    """What snippets name as a reader's own files: a table, new rows, a circuit, a graph with classes of nodes, graphs with classes."""
    def write(name, text):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def table(name, header, rows):
        write(name, "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")

    table("my.csv", "rooms,area,price", [(i % 5 + 1, 30 + 7 * (i % 11), 100 + 40 * (i % 5) + 3 * (i % 11)) for i in range(200)])
    table("new.csv", "rooms,area,price", [(i % 4 + 1, 31 + 6 * (i % 11), 101 + 41 * (i % 4) + 3 * (i % 11)) for i in range(44)])
    write("circuit.json", json.dumps({"format": "gradloom-circuit", "version": 1, "kind": "cell_rule", "channels": 1, "boundary": "periodic",
                                      "inputs": 9, "gates": [[6, 1, 7], [6, 3, 5], [7, 9, 10], [2, 11, 4]], "outputs": [12]}))
    table("club/nodes.csv", "id,age,class", [(f"n{i}", 20 + 30 * (i % 2) + i % 7, "red" if i % 2 else "blue") for i in range(30)])
    table("club/edges.csv", "from,to", [(f"n{i}", f"n{i + 2}") for i in range(28)])
    table("newclub/nodes.csv", "id,age", [(f"m{i}", 20 + 30 * (i % 2)) for i in range(6)])
    table("newclub/edges.csv", "from,to", [(f"m{i}", f"m{i + 2}") for i in range(4)])
    rings = [{"id": str(i), "class": "ring" if i % 2 else "chain", "nodes": ["C"] * (i % 4 + 3),
              "edges": [[v, v + 1] for v in range(i % 4 + 2)] + ([[i % 4 + 2, 0]] if i % 2 else [])} for i in range(60)]
    write("molecules.json", json.dumps(rings))
    write("new.json", json.dumps([{key: ring[key] for key in ("id", "nodes", "edges")} for ring in rings[:6]]))


def main():
    program, root = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    names = ["README.md"] + sorted(os.path.join("docs", n) for n in os.listdir(os.path.join(root, "docs")) if n.endswith(".md"))
    ran = failed = skipped = 0
    no_ranks = local_mpi.why_no_ranks()
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8") as f, tempfile.TemporaryDirectory() as folder:
            write_samples(folder)
            text = f.read()
            for language, note, body in FENCE.findall(text):
                if language == "json" and note.strip():
                    with open(os.path.join(folder, note.strip()), "w", encoding="utf-8") as example:
                        example.write(body)
            for stranger in strangers(text, root):
                failed += 1
                print(f"{name}: {stranger}")
            for line, must_fail in commands(text):
                words = line.split()
                if not any(os.path.basename(w) in ("gradloom", "cmp") for w in words):
                    skipped += 1
                    continue
                if NEEDS_DATA.search(line) and not os.environ.get("GRADLOOM_DATA"):
                    print(f"skipped (needs GRADLOOM_DATA): {name}: {line}")
                    skipped += 1
                    continue
                if no_ranks and NEEDS_MPI.search(line):
                    print(f"skipped ({no_ranks}): {name}: {line}")
                    skipped += 1
                    continue
                line = re.sub(r"(^|\s)(\./)?(build/release/)?gradloom(?=\s|$)", lambda m: m.group(1) + program, line)
                result = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300,
                                        env=local_mpi.environment())
                ran += 1
                if (result.returncode != 0) != must_fail:
                    failed += 1
                    print(f"{name}: {line}\n  exit code {result.returncode}\n{result.stdout}{result.stderr}")
    print(f"{ran - failed} snippets passed, {failed} failed, {skipped} skipped (they build, install, or need data or MPI)")
    sys.exit(1 if failed or ran == 0 else 0)


if __name__ == "__main__":
    main()
