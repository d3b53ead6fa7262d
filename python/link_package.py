"""Makes the package of this source tree importable in the environment of this Python, with its entry points."""

import pathlib
import sysconfig
import tomllib

here = pathlib.Path(__file__).resolve().parent
site = pathlib.Path(sysconfig.get_path("purelib"))
project = tomllib.loads((here.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
information = site / "gradloom-0.dist-info"
information.mkdir(exist_ok=True)
(information / "METADATA").write_text("Metadata-Version: 2.1\nName: gradloom\nVersion: 0\n", encoding="utf-8")
groups = [
    f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items())
    for group, names in project["entry-points"].items()
]
(information / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
(site / "gradloom.pth").write_text(f"{here}\n", encoding="utf-8")
