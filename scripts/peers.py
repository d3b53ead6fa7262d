"""The environment of the tools that gradloom is compared with: a virtual environment in build/peers, with pinned packages."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "peers"
PACKAGES = ["torch==2.5.1", "torch_geometric==2.6.1", "numpy==1.26.4", "networkx==3.4.2", "scikit-learn==1.5.2", "pykan==0.2.8",
            "gplearn==0.4.2", "torchlogix==0.2.2", "matplotlib==3.9.2", "sympy==1.13.1", "pandas==2.2.3", "tqdm==4.67.0", "seaborn==0.13.2", "PyYAML==6.0.2"]


def environment():
    """The Python of build/peers, which has the packages; installs them first where they are missing."""
    python = PEERS / "bin" / "python3"
    wanted = " ".join(PACKAGES) + "\n"
    complete = PEERS / "complete"
    if not complete.exists() or complete.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
        complete.write_text(wanted)
    return python


def into_environment(script):
    """Starts `script` again with the Python of build/peers."""
    if pathlib.Path(sys.prefix) == PEERS:
        return
    python = environment()
    os.execv(str(python), [str(python), os.path.abspath(script), *sys.argv[1:]])
