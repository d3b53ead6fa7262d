"""Ranks on this machine, for scripts that start some."""
import os
import pathlib
import shutil
import subprocess


def why_no_ranks(mpirun="mpirun"):
    """Why ranks cannot be started here, or an empty text."""
    if not shutil.which(mpirun):
        return f"there is no {mpirun}"
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    return "" if "Open MPI" in version else f"{mpirun} is not that of Open MPI, for which scripts/mpi.env is"


def environment(base=os.environ):
    """`base` with the variables of mpi.env, under which `mpirun -n P PROGRAM` works."""
    lines = (pathlib.Path(__file__).parent / "mpi.env").read_text().splitlines()
    return {**base, **dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))}
