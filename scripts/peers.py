"""The tools that gradloom is compared with: virtual environments in build/peers, with pinned packages."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "peers"
PACKAGES = ["torch==2.5.1", "torch_geometric==2.6.1", "numpy==1.26.4", "networkx==3.4.2", "scikit-learn==1.5.2", "pykan==0.2.8",
            "gplearn==0.4.2", "torchlogix==0.1.1", "matplotlib==3.9.2", "sympy==1.13.1", "pandas==2.2.3", "tqdm==4.67.0", "seaborn==0.13.2", "PyYAML==6.0.2"]


# What scripts/measure_formulas compares with, in a folder of its own: it needs no graphs and no tables.
FORMULA_PACKAGES = ["torch==2.5.1", "numpy==1.26.4", "scikit-learn==1.5.2", "pykan==0.2.8", "gplearn==0.4.2", "matplotlib==3.9.2", "sympy==1.13.1",
                    "pandas==2.2.3", "tqdm==4.67.0", "seaborn==0.13.2", "PyYAML==6.0.2"]


def environment(folder=PEERS, packages=PACKAGES):
    """The Python of `folder`, which has the packages; installs them first where they are missing."""
    python = folder / "bin" / "python3"
    wanted = " ".join(packages) + "\n"
    complete = folder / "complete"
    if not complete.exists() or complete.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        complete.write_text(wanted)
    return python


def into_environment(script):
    """Starts `script` again with the Python of build/peers."""
    if pathlib.Path(sys.prefix) == PEERS:
        return
    python = environment()
    os.execv(str(python), [str(python), os.path.abspath(script), *sys.argv[1:]])
