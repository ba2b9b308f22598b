"""Commands in files: launch scripts, Slurm batch scripts, a saved command line, Hydra's overrides; options as settings.

Nothing is run and no variable is filled in: an option whose value is `$NAME` is kept as written. Options of the
launcher (torchrun, accelerate, deepspeed, srun) and of `#SBATCH` are kept apart from the program's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.dialects.settings.command_lines import Argument, arguments, options
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import document, settle_document

_GLOBS = (
    "*.sh", "*.bash", "*.sbatch", "*.slurm", "*.pbs", "*.lsf", "cmd", "cmd.txt", "cmdline*", "command", "command.txt",
    "command_line*", "*launch*.txt", "run_command*", "*_command.txt", "*_cmd.txt", "argv.txt", "args.txt",
    "overrides.yaml",
)  # fmt: skip
_MOST_BYTES, _LINES, _COMMAND_CHARS = 256 << 10, 5000, 16 << 10
_SBATCH = lazily(r"^#SBATCH\s+--?([A-Za-z][\w-]*)[=\s]\s*(\S+)")
_SLURM = {"nodes": "nnodes", "N": "nnodes", "ntasks": "ntasks", "n": "ntasks", "ntasks-per-node": "ntasks_per_node"}
_OVERRIDE = lazily(r"^- (\S.{0,1000})$")
_EXPORT = lazily(
    r"^\s*export\s+(WORLD_SIZE|OMP_NUM_THREADS|NCCL_[A-Z_]{1,40}|CUDA_[A-Z_]{1,40}|TORCH_[A-Z_]{1,40})=(\S{1,200})"
)


@ingester("command_files", version=1, sniff=Sniff(glob=_GLOBS), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of commands; raises `NotMine` when it holds no command of a training program."""
    if opened.size_bytes > _MOST_BYTES or b"\0" in opened.head(1024):
        raise NotMine("no script")
    data = document(opened, limits)
    lines = data.decode("utf-8-sig", "replace").split("\n")[:_LINES]
    facts, commands = ConfigFacts(), 0
    is_overrides = opened.source.path.endswith("overrides.yaml")
    for number, found in _overrides(lines) if is_overrides else _commands(lines):
        commands += any(option.family == "config" for option in found)
        for option in found:
            facts.put(option.key, option.value, number, option.family)
    if not commands:
        raise NotMine("no command of a training program")
    facts.write(out)
    out.format("command")
    settle_document(opened, out, records=commands)


def _overrides(lines: Sequence[str]) -> Iterator[tuple[int, list[Argument]]]:
    """Hydra's list: `- optim.lr=0.3`."""
    for number, line in enumerate(lines, 1):
        if found := _OVERRIDE.match(line):
            yield number, options([found[1].strip("'\"")])


def _commands(lines: Sequence[str]) -> Iterator[tuple[int, list[Argument]]]:
    """Options of each command, what Slurm was asked for, variables of libraries; with the first line of each."""
    continued = False
    for number, line in enumerate(lines, 1):
        begins, continued = not continued, line.rstrip().endswith("\\")
        if found := _SBATCH.match(line):
            if found[1] in _SLURM:
                yield number, [Argument(f"slurm.{_SLURM[found[1]]}", found[2], "env")]
        elif found := _EXPORT.match(line):
            yield number, [Argument(found[1].lower(), found[2].strip("\"'"), "env")]
        elif begins and not line.lstrip().startswith("#"):
            text = "\n".join(lines[number - 1 : number + 199]) if continued else line
            yield number, arguments(text[:_COMMAND_CHARS])
