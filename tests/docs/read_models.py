#!/usr/bin/env python3
"""Reads model files as docs/format.md describes them, computes their outputs with NumPy, and compares with `gradloom predict`.

Usage: read_models.py PROGRAM
Knows nothing of gradloom but that document: the files are read byte by byte.
"""
import csv
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("Skipped: this Python has no NumPy")
    sys.exit(0)

DTYPES = {"F32": np.float32, "F64": np.float64}


def read_model(path):
    with open(path, "rb") as f:
        data = f.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    about = {key: json.loads(value) for key, value in header.pop("__metadata__").items()}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + begin:8 + length + end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    assert about["format"] == "gradloom-model" and about["version"] == 2, about
    return about, tensors


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def features_of(about, rows):
    """Cells of a table as the features of the model, (rows, features)."""
    data = about["options"]["data"]
    columns = []
    for column in about["input"]["features"]:
        cells = [row[column["name"]] for row in rows]
        if not column["categories"]:
            made = [[float(c) if is_number(c) else np.nan for c in cells]]
        elif data["categories"] == "one-hot":
            made = [[np.nan if c == "" else float(c == word) for c in cells] for word in column["categories"]]
        else:
            made = [[np.nan if c == "" else float(column["categories"].index(c)) for c in cells]]
        for k, values in enumerate(made):
            values = np.array(values)
            if column["means"]:
                values = np.where(np.isnan(values), column["means"][k], values)
            columns.append(values)
    x = np.stack(columns, axis=1)
    assert x.shape[1] == len(about["features"]) and np.isfinite(x).all()
    return x


def basis(t, degree, grid, x):
    """Values and slopes (G + p) of the functions on the knots t, at x within the grid: Cox and de Boor."""
    p, last = degree, degree + grid - 1
    interval = min(max(int(np.searchsorted(t, x, side="right")) - 1, p), last)
    values = np.zeros(len(t) - 1)
    values[interval] = 1.0
    lower = values
    for d in range(1, p + 1):
        lower = values
        values = np.zeros(len(t) - 1 - d)
        for m in range(len(values)):
            values[m] = (x - t[m]) / (t[m + d] - t[m]) * lower[m] + (t[m + d + 1] - x) / (t[m + d + 1] - t[m + 1]) * lower[m + 1]
    slopes = np.array([p * (lower[m] / (t[m + p] - t[m]) - lower[m + 1] / (t[m + p + 1] - t[m + 1])) for m in range(len(values))])
    return values, slopes


def kan_outputs(about, tensors, x):
    model = about["options"]["model"]
    grid, degree = model["grid"], model["degree"]
    centre = about["normalisation"].get("centre", {})
    x = x - np.array(centre.get("inputs", 0.0))
    x = (x - tensors["buffers/input.mean"]) / tensors["buffers/input.std"]
    layer = 0
    while f"parameters/layer{layer}.weight" in tensors:
        weight = tensors[f"parameters/layer{layer}.weight"]  # (In, rows, Out)
        lo, hi = tensors[f"buffers/layer{layer}.lo"], tensors[f"buffers/layer{layer}.hi"]
        y = np.zeros((len(x), weight.shape[2]))
        for i in range(weight.shape[0]):
            if model["knots"] == "free":
                knots = tensors[f"buffers/layer{layer}.knots"][i]
            else:
                knots = lo[i] + (hi[i] - lo[i]) * np.arange(grid + 1) / grid
            low = knots[0] - (knots[1] - knots[0]) * np.arange(degree, 0, -1)
            high = knots[-1] + (knots[-1] - knots[-2]) * np.arange(1, degree + 1)
            t = np.concatenate([low, knots, high])
            for s in range(len(x)):
                edge = min(max(x[s, i], knots[0]), knots[-1])
                values, slopes = basis(t, degree, grid, edge)
                assert model["outside"] in ("linear", "clamp")
                beyond = x[s, i] - edge if model["outside"] == "linear" else 0.0
                y[s] += (values + slopes * beyond) @ weight[i, :grid + degree]
                if model["base"]:
                    z = x[s, i] if model["outside"] == "linear" else edge
                    y[s] += z / (1 + np.exp(-z)) * weight[i, grid + degree]
        bias = tensors.get(f"parameters/layer{layer}.bias")
        x = y if bias is None else y + bias
        if layer < len(model["multiply"]):
            nodes, products = model["hidden"][layer], model["multiply"][layer]
            assert x.shape[1] == nodes + products
            x = np.concatenate([x[:, :nodes - products], x[:, nodes - products:nodes] * x[:, nodes:]], axis=1)
        layer += 1
    return tensors["buffers/output.mean"] + tensors["buffers/output.std"] * x + np.array(centre.get("targets", 0.0))


def gate_outputs(about, tensors, x):
    bits = about["normalisation"]["bits"]
    signals = np.stack([(x[:, b["feature"]] > b["threshold"]).astype(float) for b in bits], axis=1)
    layer = 0
    while f"parameters/layer.{layer}" in tensors:
        logits = tensors[f"parameters/layer.{layer}"]  # (gates, 16)
        wires = tensors[f"buffers/layer.{layer}.wires"].astype(int)
        a, b = signals[:, wires[:, 0]], signals[:, wires[:, 1]]
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        table = (np.arange(16)[:, None] >> np.array([3, 2, 1, 0])) & 1  # f(0,0), f(0,1), f(1,0), f(1,1)
        f = share @ table
        signals = f[:, 0] * (1 - a) * (1 - b) + f[:, 1] * (1 - a) * b + f[:, 2] * a * (1 - b) + f[:, 3] * a * b
        layer += 1
    classes = len(about["classes"])
    return signals.reshape(len(x), classes, -1).sum(axis=2) / about["options"]["model"]["temperature"]


def graph_inputs(about, graph):
    """The rows of the nodes, and the arcs: (source, destination, weight, features)."""
    form, nodes = about["input"], graph["nodes"]
    arcs = []
    for edge in graph["edges"]:
        ends = [(edge["from"], edge["to"])]
        if form["direction"] == "undirected" and edge["from"] != edge["to"]:
            ends.append((edge["to"], edge["from"]))
        f = np.zeros(form["edge_features"])
        f[:form["given_edge_features"]] = edge.get("features", [])
        if form["edge_labels"]:
            f[form["given_edge_features"] + form["edge_labels"].index(edge["label"])] = 1
        arcs += [(a, b, edge["weight"] if form["edge_weights"] else 1.0, f) for a, b in ends]
    x = np.zeros((len(nodes), form["node_features"]))
    for v, node in enumerate(nodes):
        if form["nodes"] in ("given", "all"):
            given = np.array(node["features"], dtype=np.float64)
            if about["normalisation"]:
                given = (given - about["normalisation"]["mean"]) / about["normalisation"]["deviation"]
            x[v, :len(given)] = given
        if form["nodes"] in ("labels", "all"):
            x[v, form["node_features"] - len(form["node_labels"]) + form["node_labels"].index(node["label"])] = 1
        if form["nodes"] == "degrees":
            x[v, min(sum(b == v for _, b, _, _ in arcs), form["node_features"] - 1)] = 1
    return x, arcs


def graph_network(model, task, tensors, x, arcs, prefix=""):
    """The outputs of each node, or of the graph."""
    def tensor(name):
        return tensors.get(f"parameters/{prefix}{name}")

    def norm(name, z):
        if model["norm"] == "batch":
            mean, variance = tensors[f"buffers/{prefix}{name}.mean"], tensors[f"buffers/{prefix}{name}.variance"]
        else:
            mean, variance = z.mean(axis=1, keepdims=True), z.var(axis=1, keepdims=True)
        return (z - mean) / np.sqrt(variance + 1e-5) * tensor(name + ".gain") + tensor(name + ".shift")

    def act(z):
        return np.maximum(z, 0) if model["activation"] == "relu" else z / (1 + np.exp(-z))

    headless = task == "nodes" and model["jumping"] == "none"
    degree = np.zeros(len(x))
    for _, i, _, _ in arcs:
        degree[i] += 1
    root = 1 / np.sqrt(degree + 1)[:, None]
    h, layers = x, []
    for layer in range(len(model["hidden"]) + headless):
        name = f"layer.{layer}"
        gcn = model["layer"] == "gcn"
        assert gcn or model["layer"] == "gin"
        a = h * root if gcn else (1 + tensor(name + ".epsilon")) * h
        edges = np.zeros((len(x), len(arcs[0][3])))
        for j, i, w, f in arcs:
            a[i] += w * h[j] * (root[j] if gcn else 1)
            edges[i] += w * f
        scale = root if gcn else 1
        z = scale * a @ tensor(name + (".weight" if gcn else ".weight_1"))
        if tensor(name + ".edge_weight") is not None:
            z += scale * edges @ tensor(name + ".edge_weight")
        if not gcn:
            inner = z + tensor(name + ".bias_1") if model["norm"] == "none" else norm(name + ".inner_norm", z)
            z = act(inner) @ tensor(name + ".weight_2")
        if headless and layer == len(model["hidden"]):
            return z + tensor(name + ".bias")
        made = act(z + tensor(name + ".bias") if model["norm"] == "none" else norm(name + ".norm", z))
        h = made + h if model["residual"] and made.shape == h.shape else made
        layers.append(h)
    read = layers if model["jumping"] == "concat" else [np.max(layers, axis=0)] if model["jumping"] == "max" else layers[-1:]
    y = tensor("head.bias")
    for k, rows in enumerate(read):
        if task == "graphs":
            rows = getattr(rows, model["readout"])(axis=0, keepdims=True)
        y = y + rows @ tensor("head.weight" if len(read) == 1 else f"head.weight_{k}")
    return y


def graph_outputs(about, tensors, graphs):
    """Rows of all graphs or nodes, or of the pairs (0, 1), (0, 2), ..., (1, 2), ..."""
    model, task = about["options"]["model"], about["options"].get("task")
    inputs = [graph_inputs(about, g) for g in graphs]
    if about["family"] == "graph":
        return np.concatenate([graph_network(model, task, tensors, *i) for i in inputs])
    codes = [graph_network(model, "graphs", tensors, *i, prefix="encoder.")[0] for i in inputs]
    y = []
    for i in range(len(graphs)):
        for j in range(i + 1, len(graphs)):
            u, v = codes[i], codes[j]
            s = np.concatenate([abs(u - v), u + v]) @ tensors["parameters/pair.weight_1"] + tensors["parameters/pair.bias_1"]
            s = np.maximum(s, 0) if model["activation"] == "relu" else s / (1 + np.exp(-s))
            s = s @ tensors["parameters/pair.weight_2"] + tensors["parameters/pair.bias_2"]
            y.append(np.exp(-2 * np.log1p(np.exp(s)) / (len(inputs[i][0]) + len(inputs[j][0]))))
    return np.array(y)


def probabilities(y):
    if y.shape[1] == 1:
        p = 1 / (1 + np.exp(-y[:, 0]))
        return np.stack([1 - p, p], axis=1)
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def outside_of(about, x):
    ranges = np.array(about["ranges"])
    return ((x < ranges[:, 0]) | (x > ranges[:, 1])).sum(axis=1)


def write_table(path, rows, shift, holes):
    random = np.random.default_rng(rows)
    with open(path, "w", encoding="utf-8") as f:
        f.write("size,colour,weight,price,kind\n")
        for r in range(rows):
            size, weight = random.normal() * (1 + shift), random.uniform(0, 20) + 10 * shift
            colour = ["red", "green", "blue"][random.integers(3)]
            price = np.sin(size) + 0.1 * weight + (colour == "red")
            cell = "" if holes and r % 7 == 3 else f"{weight:.4f}"
            f.write(f"{size:.4f},{colour},{cell},{price:.4f},{'dear' if price > 1 else 'cheap'}\n")


def make_graphs(count, seed):
    """Paths with chords, of two classes; nodes have labels and numbers, edges have everything."""
    random = np.random.default_rng(seed)
    graphs = []
    for g in range(count):
        n = int(random.integers(3, 8))
        nodes = [{"label": "CNO"[random.integers(3)], "features": random.normal(size=2).round(3).tolist(), "class": "ab"[(v + g) % 2]} for v in range(n)]
        ends = {(v - 1, v) for v in range(1, n)} | {(int(random.integers(0, v)), v) for v in range(2, n) if g % 2}
        edges = [{"from": a, "to": b, "weight": round(random.uniform(0.5, 2), 3), "label": "-="[random.integers(2)],
                  "features": random.normal(size=1).round(3).tolist()} for a, b in sorted(ends)]
        graphs.append({"id": f"g{g}", "class": "chords" if g % 2 else "path", "nodes": nodes, "edges": edges})
    return graphs


def graph_cases(precision):
    common = f"--set precision={precision} --set epochs=3 --set train.checkpoint_seconds=1000"
    tu = f"train tu {common} --set data.path=old.json --set data.folds=0 --set train.ged_sample=0 --set train.batch=8 --set model.hidden=[5,6]"
    return [
        ("gin-batch", tu),
        ("gin-none", f"{tu} --set model.norm=none --set model.jumping=none --set model.readout=mean --set data.features=all"
                     " --set data.standardise=true --set data.edge_labels=true --set model.activation=silu"),
        ("gcn-max", f"{tu} --set model.layer=gcn --set model.norm=layer --set model.jumping=max --set model.hidden=[6,6]"
                    " --set model.residual=true --set model.readout=max --set data.features=degrees"),
        ("gcn-nodes", f"train graph-nodes {common} --set data.path=one.json --set model.layer=gcn --set data.features=given --set model.hidden=[7]"),
        ("gin-pairs", f"train ged-regression {common} --set data.path=old.json --set data.distances=old-d.txt --set model.hidden=[6]"
                      " --set model.code=5 --set model.head=4 --set train.batch=32"),
    ]


def check_graphs(run, folder, precision, bound):
    """How many of the networks of graphs are not as they are described."""
    def write(name, content):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
    old, new, one = make_graphs(30, 1), make_graphs(8, 2), make_graphs(6, 3)[5]
    write("old.json", old)
    write("new.json", new)
    write("one.json", one)
    random = np.random.default_rng(4)
    rows = [" ".join(str(random.integers(1, 9)) for _ in range(g)) for g in range(len(old))]
    write("old-d.txt", "\n".join([str(len(old)), " ".join(g["id"] for g in old), *rows]) + "\n")
    failed = 0
    for name, command in graph_cases(precision):
        name = f"{name}-{precision}"
        run([*command.split(), "--out", name, "--quiet"])
        asked = [one] if "nodes" in name else new
        run(["predict", f"{name}/model.safetensors", "--data", "one.json" if "nodes" in name else "new.json", "--out", "p.npy"])
        about, tensors = read_model(os.path.join(folder, name, "model.safetensors"))
        y = graph_outputs(about, tensors, asked)
        expected = probabilities(y) if about["classes"] else y
        predicted = np.load(os.path.join(folder, "p.npy"))
        good = predicted.shape == expected.shape
        difference = np.abs(predicted - expected).max() if good else np.inf
        good = good and difference <= bound
        print(f"{name}: largest difference {difference:.2g}{'' if good else ' WRONG'}")
        failed += not good
    return failed


def main():
    program = os.path.abspath(sys.argv[1])
    common = "--set data.path=old.csv --set data.missing=mean --set epochs=5 --set train.checkpoint_seconds=1000"
    cases = []
    for precision, bound in (("float64", 1e-9), ("float32", 1e-5)):
        also = f"{common} --set precision={precision}"
        cases += [
            (f"kan-{precision}", f"train kan-tabular {also} --set data.target=price --set data.drop=kind", kan_outputs, bound),
            (f"uniform-{precision}", f"train kan-tabular {also} --set task=classification --set data.target=kind --set data.drop=price"
                                     " --set model.outside=linear --set model.knots=uniform --set model.normalise=range --set model.hidden=[4,3]"
                                     " --set data.categories=ordinal", kan_outputs, bound),
            (f"multiply-{precision}", f"train kan-tabular {also} --set data.target=price --set data.drop=kind --set model.size=given"
                                      " --set model.hidden=[5,4] --set model.multiply=[2,4]", kan_outputs, bound),
            (f"gates-{precision}", f"train logic-classify {also} --set data.target=kind --set data.drop=price --set data.test_path="
                                   " --set data.categorical=[] --set model.gates=[40,30] --set data.test=0.2", gate_outputs, bound),
        ]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        def run(words):
            result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, timeout=300)
            if result.returncode != 0:
                sys.exit(f"gradloom {' '.join(words)}\n  exit code {result.returncode}\n{result.stderr}")
            return result.stdout
        write_table(os.path.join(folder, "old.csv"), 160, 0.0, True)
        write_table(os.path.join(folder, "new.csv"), 40, 0.5, True)
        with open(os.path.join(folder, "new.csv"), encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        for name, command, outputs, bound in cases:
            run([*command.split(), "--out", name, "--quiet"])
            for file in ("p.csv", "p.npy"):
                told = json.loads(run(["predict", f"{name}/model.safetensors", "--data", "new.csv", "--out", file, "--json"]))
            about, tensors = read_model(os.path.join(folder, name, "model.safetensors"))
            x = features_of(about, rows)
            y = outputs(about, tensors, x)
            expected = probabilities(y) if about["classes"] else y
            predicted = np.load(os.path.join(folder, "p.npy"))
            assert predicted.shape == expected.shape and predicted.dtype == DTYPES[{"float32": "F32", "float64": "F64"}[about["precision"]]]
            difference = np.abs(predicted - expected).max() / max(1.0, np.abs(expected).max())
            with open(os.path.join(folder, "p.csv"), encoding="utf-8") as f:
                table = list(csv.DictReader(f))
            outside = outside_of(about, x)
            good = difference <= bound and [int(row["outside"]) for row in table] == outside.tolist()
            good = good and told["outside"] == int((outside > 0).sum()) and told["rows"] == len(rows)
            if about["classes"]:
                target = "kind"
                good = good and [row["kind_predicted"] for row in table] == [about["classes"][c] for c in y.argmax(axis=1)]
                good = good and all(abs(float(table[r][f"p({c})"]) - expected[r, k]) <= bound
                                    for r in range(len(rows)) for k, c in enumerate(about["classes"]))
            else:
                target = "price"
                good = good and all(abs(float(row["price_predicted"]) - v) <= bound * max(1.0, np.abs(y).max()) for row, v in zip(table, y[:, 0]))
            good = good and [row[target] for row in table] == [r[target] if target == "kind" else repr(float(r[target])) for r in rows]
            print(f"{name}: largest difference {difference:.2g}, {int((outside > 0).sum())} rows outside{'' if good else ' WRONG'}")
            failed += not good
        for precision, bound in (("float64", 1e-9), ("float32", 1e-4)):
            failed += check_graphs(run, folder, precision, bound)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
