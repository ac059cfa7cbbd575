"""A new kind of domain is one folder and one file: a copy of the package with both has all commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import meanfield

FOLDER = Path(__file__).parents[1] / "support/segment"
CASE = """
title = "Between walls"
domain = { manifold = "box", resolution = 32 }
attention = { beta = 2.0 }
stabilizers = { layer_norm = "none", gate = 0.5 }
initial = { kind = "step", factor = 3.0 }
time = { end = 0.5 }
output = { snapshots = 2, samples = 4 }
"""
SCRIPT = """
import json, sys
import numpy as np
import meanfield as mf
from meanfield.case import Segment
from meanfield.cli.parser import main

COMMANDS = [
    "check case.toml", "run case.toml --quiet", "info case.h5", "plot case.h5", "movie case.h5 -o case.gif",
    "view case.h5", "export case.h5 --to csv", "compare case.h5 case.h5", "resume case.h5 --until 1 --quiet",
    "keys domain.half", "keys initial.factor", "schema", "new segment --phenomenon blow_up -o new.toml",
    "check new.toml", "convergence case.toml --over domain.resolution --of mean", "sweep sweep.toml --jobs 1",
]  # fmt: skip
found = {"package": mf.__file__, "statuses": [main(command.split()) for command in COMMANDS]}
result = mf.open_run("case.h5")
found |= {"manifold": result.case.domain.manifold, "is_segment": isinstance(result.case.domain, Segment)}
found |= {"mass": list(result.diagnostics["mass"]), "label": result.plot(panels=["density"]).axes[0].get_ylabel()}
try:
    mf.load_case("case.toml", ["initial.at=2.0"])
except mf.CaseError as error:
    found["refused"] = str(error)
sys.path.append(sys.argv[1])
from project.test_imports import FILES, test_rooms_import_in_one_direction
test_rooms_import_in_one_direction()
found["files"] = [path.name for path in FILES if path.parent.name == "segment"]
print("found", json.dumps(found))
"""


def test_a_domain_is_a_folder_and_one_file(tmp_path):
    package = tmp_path / "meanfield"
    shutil.copytree(Path(meanfield.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(FOLDER, package / "domains/segment", ignore=shutil.ignore_patterns("__pycache__"))
    table = package / "domains/table.py"
    before = table.read_text("utf-8")
    after = before.replace(
        "from meanfield.domains.sphere",
        "from meanfield.domains.segment.section import Segment\nfrom meanfield.domains.sphere",
    ).replace("Particles, Trained)", "Particles, Trained, Segment)")
    assert len(after) > len(before) + 60
    table.write_text(after, "utf-8")
    (tmp_path / "case.toml").write_text(CASE, "utf-8")
    tables = CASE.replace("\n", "\ncase.").replace("case.title", "title").removesuffix("case.")
    (tmp_path / "sweep.toml").write_text(f'{tables}\n[keys]\n"attention.beta" = [1.0, 2.0]\n', "utf-8")
    source = Path(__file__).parents[2]  # folder of solvers, if the packages are not installed
    paths = [str(tmp_path), *([str(source)] if (source / "solvers").exists() else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1])]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    found = json.loads(lines[0].removeprefix("found "))
    assert found.pop("package") == str(package / "__init__.py")
    assert found.pop("statuses") == [0] * 16, done.stderr
    assert max(abs(mass - 1) for mass in found.pop("mass")) < 1e-12
    assert found == {
        "manifold": "segment",
        "is_segment": True,
        "label": "place x",
        "refused": "initial.at = 2.0: expected a place within domain.half = 1.0",
        "files": ["__init__.py", "diagnostics.py", "pictures.py", "section.py", "setup.py"],
    }
