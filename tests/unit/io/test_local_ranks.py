"""Torchrun's folders count on their own node; what the workers print tells the global rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.io.discover import discover


def made(root: Path, files: dict[str, str]) -> dict[str, int | None]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {source.path: source.rank for source in discover(root).sources}


def test_the_tag_of_one_worker_places_its_node(tmp_path: Path) -> None:
    ranks = made(
        tmp_path,
        {
            "a/attempt_0/0/stderr.log": "[rank0]: warning\n",
            "a/attempt_0/1/stdout.log": "step 1\n",
            "b/attempt_0/0/stdout.log": "step 1\n",
            "b/attempt_0/1/stderr.log": "[rank3]: Traceback\n",
        },
    )
    assert ranks == {
        "a/attempt_0/0/stderr.log": 0,
        "a/attempt_0/1/stdout.log": 1,
        "b/attempt_0/0/stdout.log": 2,
        "b/attempt_0/1/stderr.log": 3,
    }


def test_one_node_out_of_the_middle_of_a_job_is_placed_too(tmp_path: Path) -> None:
    text = "INFO | rank={} | step 3\n"
    files = {f"x/attempt_0/{n}/stdout.log": text.format(8 + n) for n in range(3)}
    assert list(made(tmp_path, files).values()) == [8, 9, 10]


def test_the_rank_of_a_matrix_is_no_rank(tmp_path: Path) -> None:
    files = {f"x/attempt_0/{n}/stdout.log": "adapter: rank=16\n" for n in range(3)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2]


def test_of_two_nodes_that_cannot_be_told_apart_no_rank_is_known(tmp_path: Path) -> None:
    files = {f"{node}/attempt_0/0/stdout.log": "step 1\n" for node in "ab"}
    assert list(made(tmp_path, files).values()) == [None, None]


def test_restarts_of_one_node_are_not_two_nodes(tmp_path: Path) -> None:
    files = {f"x/attempt_{k}/1/stdout.log": "step 1\n" for k in range(2)}
    assert list(made(tmp_path, files).values()) == [1, 1]


def test_files_of_the_tasks_of_a_step_have_their_ranks_and_an_empty_one_counts(tmp_path: Path) -> None:
    files = {"slurm-7_0.out": "[rank0]: Traceback\n", "slurm-7_1.out": "[rank1]: Traceback\n", "slurm-7_2.out": ""}
    assert made(tmp_path, files) == {"slurm-7_0.out": 0, "slurm-7_1.out": 1}
    assert {source.path: source.rank for source in discover(tmp_path).empty} == {"slurm-7_2.out": 2}


def test_a_task_that_names_another_rank_makes_the_numbers_those_of_nodes(tmp_path: Path) -> None:
    files = {"slurm-7_0.out": "[rank3]: Traceback\n", "slurm-7_1.out": "[rank9]: Traceback\n"}
    assert list(made(tmp_path, files).values()) == [None, None]


def test_tasks_of_a_second_node_count_on_where_their_tags_say_so(tmp_path: Path) -> None:
    files = {f"n{node}_local{n}.out": f"[rank{2 * node + n}]: Traceback\n" for node in range(2) for n in range(2)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2, 3]


@pytest.mark.parametrize("tags", [(2, 5), (1, 2)], ids=["not alike", "over those of the first node"])
def test_tags_that_do_not_count_on_place_no_second_node(tags: tuple[int, int], tmp_path: Path) -> None:
    said = {"n0_local": (0, 1), "n1_local": tags}
    files = {f"{name}{n}.out": f"[rank{tag}]: x\n" for name, own in said.items() for n, tag in enumerate(own)}
    assert list(made(tmp_path, files).values()) == [0, 1, None, None]


def test_jobs_of_an_array_that_are_all_rank_0_are_no_tasks(tmp_path: Path) -> None:
    files = {"slurm-7_0.out": "[rank0]: Traceback\n", "slurm-7_1.out": "step 3\n"}
    assert list(made(tmp_path, files).values()) == [None, None]


def test_one_task_that_speaks_among_silent_ones_is_rank_0(tmp_path: Path) -> None:
    files = {
        "slurm-7_0.err": "[rank0]: Traceback\n",
        "slurm-7_0.out": "step 3\n",
        "slurm-7_1.err": "",
        "slurm-7_1.out": "",
    }
    assert made(tmp_path, files) == {"slurm-7_0.err": 0, "slurm-7_0.out": 0}


def test_the_launchers_log_names_its_tasks(tmp_path: Path) -> None:
    files = {
        "slurm-7.err": "srun: error: n1: task 1: Exited with exit code 1\nsrun: error: n1: task 0: Terminated\n",
        "slurm-7_0.err": "warning\n",
        "slurm-7_1.err": "TimeoutError: late\n",
    }
    assert made(tmp_path, files) == {"slurm-7.err": None, "slurm-7_0.err": 0, "slurm-7_1.err": 1}


def test_a_launchers_log_that_names_more_tasks_is_that_of_another_step(tmp_path: Path) -> None:
    files = {"job.log": "srun: error: n1: tasks 2-3: Killed\n", "fold_0.log": "step 3\n", "fold_1.log": "step 3\n"}
    assert list(made(tmp_path, files).values()) == [None, None, None]


def test_a_task_that_is_torchruns_agent_speaks_for_a_node(tmp_path: Path) -> None:
    agent = "W torch.distributed.elastic.agent: started\n"
    files = {"slurm-7.err": "srun: error: n1: task 1: Killed\n", "slurm-7_0.out": agent, "slurm-7_1.out": agent}
    assert list(made(tmp_path, files).values()) == [None, None, None]


def test_numbers_with_a_gap_are_no_tasks(tmp_path: Path) -> None:
    files = {f"slurm-7_{n}.out": f"[rank{n}]: Traceback\n" for n in (0, 2)}
    assert list(made(tmp_path, files).values()) == [None, None]


_SAYS = "world 3 rank {} iters 100\n"


def test_what_two_tasks_say_of_their_rank_proves_the_numbers_of_all(tmp_path: Path) -> None:
    files = {f"trainer_0{n}.txt": _SAYS.format(n) if n < 2 else "step 1\n" for n in range(3)}
    beside = {f"stacks_0{n}.txt": "Thread\n" for n in range(3)} | {f"timing.{n}.jsonl": "{}\n" for n in range(3)}
    other = {f"epoch_{n}.csv": "a,b\n" for n in range(3)} | {f"part.{n}.jsonl": "{}\n" for n in range(2)}
    found = made(tmp_path, files | beside | other)
    assert {name: rank for name, rank in found.items() if rank is not None} == {
        name: n for stem in ("trainer_0{}.txt", "stacks_0{}.txt", "timing.{}.jsonl")
        for n in range(3) for name in (stem.format(n),)
    }  # fmt: skip


@pytest.mark.parametrize("said", [(1, 2), (0, 0), (0, None)], ids=["of others", "all of one", "one alone"])
def test_numbers_that_are_not_what_tasks_say_of_their_rank_are_none(
    said: tuple[int | None, ...], tmp_path: Path
) -> None:
    files = {f"run_{n}.log": "step 1\n" if rank is None else _SAYS.format(rank) for n, rank in enumerate(said)}
    assert set(made(tmp_path, files).values()) == {None}


@pytest.mark.parametrize(
    ("stem", "says", "known"),
    [
        ("registro_{}.log", "entrenamiento: rango {} de 3", True),
        ("job-{}.log", "RANK={} WORLD_SIZE=3", True),
        ("pila_rango{}.txt", "Thread 1", True),
        ("metricas-posto{}.jsonl", "{{}}", True),
        ("journal{}.log", "rang {} sur 3", True),
        ("journal_{}.jsonl", '{{"msg": "rang {} sur 3"}}', True),
        ("journal_{}.jsonl", '{{"msg": "morceau {} sur 3"}}', False),
        ("registro_{}.log", "intervalo {} de 3", False),
        ("job-{}.log", "LOCAL_RANK={} WORLD_SIZE=3", False),
        ("seed{}.jsonl", "{{}}", False),
    ],
)
def test_the_word_for_rank_of_other_languages_numbers_files(stem: str, says: str, known: bool, tmp_path: Path) -> None:
    ranks = made(tmp_path, {stem.format(n): says.format(n) + "\n" for n in range(3)})
    assert list(ranks.values()) == ([0, 1, 2] if known else [None, None, None])


@pytest.mark.parametrize(("count", "ranks"), [(2, [0, 1]), (3, [None] * 3)], ids=["as many", "more"])
def test_what_is_numbered_beside_the_logs_of_workers_is_numbered_as_these(
    count: int, ranks: list[int | None], tmp_path: Path
) -> None:
    files = {f"worker-{n}.log": "step 1\n" for n in range(2)} | {f"stacks_{n}.txt": "Thread\n" for n in range(count)}
    assert [rank for name, rank in made(tmp_path, files).items() if name.startswith("stacks")] == ranks


@pytest.mark.parametrize(("told", "ranks"), [((0, 2), [0, 1, 2]), ((0, 1), [None] * 3), ((0,), [None] * 3)])
def test_folders_are_those_of_ranks_where_two_logs_say_their_number(
    told: tuple[int, ...], ranks: list[int | None], tmp_path: Path
) -> None:
    said = dict(zip((0, 2), told, strict=False))
    files = {f"gpu{n}/train.log": f"aborted on rank {said[n]}\n" if n in said else "step 1\n" for n in range(3)}
    assert list(made(tmp_path, files).values()) == ranks


@pytest.mark.parametrize(
    ("says", "ranks"),
    [
        ("I am rank {} of 3", [0, 1, 2]),
        ("[init] rank={} host=mill", [0, 1, 2]),
        ("worker {}/3 is up", [0, 1, 2]),
        ("global rank: {}, local rank: 0", [0, 1, 2]),
        ("node rank: {}", [None] * 3),
        ("rank 0 of 3, peer {}", [None] * 3),
        ("rank {} waits for rank 3", [None] * 3),
        ("worker {} is up", [None] * 3),
    ],
)
def test_logs_that_are_named_by_hosts_have_the_rank_that_their_first_lines_say(
    says: str, ranks: list[int | None], tmp_path: Path
) -> None:
    files = {f"{name}.out": says.format(n) + "\nstep 1\n" for n, name in enumerate(("ant", "bee", "cat"))}
    assert list(made(tmp_path, files).values()) == ranks


def test_a_log_of_a_rank_may_be_missing_and_the_launchers_says_nothing(tmp_path: Path) -> None:
    files = {"a.log": "rank 0 of 4\n", "b.log": "rank 1 of 4\n", "d.log": "rank 3 of 4\n", "launcher.log": "started\n"}
    assert list(made(tmp_path, files).values()) == [0, 1, 3, None]


def test_a_rank_that_is_said_further_down_is_no_head(tmp_path: Path) -> None:
    files = {f"{name}.log": "step\n" * 10 + f"lost rank {n}\n" for n, name in enumerate("ab")}
    assert list(made(tmp_path, files).values()) == [None, None]


def test_what_a_log_says_of_its_rank_goes_before_the_number_in_its_name(tmp_path: Path) -> None:
    pods = {"m-master-0.log": 0, **{f"m-worker-{n}.log": n + 1 for n in range(3)}}
    assert made(tmp_path, {name: f"WORLD_SIZE=4 RANK={rank}\nstep 1\n" for name, rank in pods.items()}) == pods


def test_gpus_of_two_nodes_are_counted_on_where_their_logs_say_so(tmp_path: Path) -> None:
    files = {f"t.n{n}.gpu{g}.log": f"RANK={2 * n + g} LOCAL_RANK={g}\nstep 1\n" for n in range(2) for g in range(2)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("head", "ranks"),
    [
        ("[launch.py:151:main] nnodes=2, num_local_procs=4, node_rank={n}", [None, None]),
        ("[launch.py:151:main] nnodes=2, num_local_procs=1, node_rank={n}", [0, 1]),
        ("Namespace(node_rank=0, nproc_per_node=2, local_rank={n})", [0, 1]),
        ("nnodes=2, num_local_procs=4", [0, 1]),
    ],
    ids=["several", "one each", "a worker's own", "no node"],
)
def test_the_number_of_a_launchers_log_counts_nodes(head: str, ranks: list[int | None], tmp_path: Path) -> None:
    files = {f"worker-{n}.log": f"{head.format(n=n)}\nstep 1\n" for n in range(2)}
    assert list(made(tmp_path, files).values()) == ranks


def test_logs_of_a_second_node_count_on_where_the_tags_in_them_say_so(tmp_path: Path) -> None:
    files = {f"node1/worker_{n}.log": f"loss 1\n[rank{n + 4}]: x\n" if n else "loss 1\n" for n in range(4)}
    assert list(made(tmp_path, files).values()) == [4, 5, 6, 7]


@pytest.mark.parametrize("tags", [(1, 0), (2, 5), (1, 2)], ids=["peers", "apart", "too near"])
def test_tags_that_count_no_node_move_no_log(tags: tuple[int, int], tmp_path: Path) -> None:
    files = {f"worker_{n}.log": f"loss 1\n[rank{tag}]: x\n" for n, tag in enumerate(tags)}
    assert list(made(tmp_path, files).values()) == [0, 1]


def test_the_output_of_an_agent_with_tags_of_its_workers_is_of_no_rank(tmp_path: Path) -> None:
    files = {f"worker_{n}.log": f"torch.distributed.elastic\n[rank{8 * n}]: x\n" for n in range(2)}
    assert list(made(tmp_path, files).values()) == [None, None]


@pytest.mark.parametrize(
    "name", ["host{}/local_rank_{}.txt", "dumps/node-{}/rank{}.pkl", "Machine_{}/logs/rank_{}.log"]
)
@pytest.mark.parametrize("first", [0, 1])
def test_ranks_of_hosts_that_count_from_0_go_on_from_host_to_host(tmp_path: Path, name: str, first: int) -> None:
    files = {name.format(first + host, local): "step 1\n" for host in range(3) for local in range(2)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2, 3, 4, 5]


def test_hosts_of_one_process_are_counted(tmp_path: Path) -> None:
    files = {f"host{host}/rank_0.log": "step 1\n" for host in range(3)}
    assert list(made(tmp_path, files).values()) == [0, 1, 2]


@pytest.mark.parametrize("hosts", [(2, 3), (0, 2), (17, 4)])
def test_of_hosts_whose_order_is_unknown_no_rank_is(tmp_path: Path, hosts: tuple[int, int]) -> None:
    files = {f"host{host}/rank_{local}.log": "step 1\n" for host in hosts for local in range(2)}
    assert set(made(tmp_path, files).values()) == {None}


@pytest.mark.parametrize(
    "names",
    [
        ["host0/rank_0.log", "host0/rank_1.log", "host1/rank_2.log", "host1/rank_3.log"],
        ["host0/rank_0.log", "host0/rank_1.log", "host1/rank_0.log", "host1/rank_2.log"],
        ["host0/rank_0.log", "host0/rank_1.log"],
    ],
    ids=["count on", "differ", "alone"],
)
def test_ranks_of_hosts_that_are_global_stay(tmp_path: Path, names: list[str]) -> None:
    ranks = made(tmp_path, dict.fromkeys(names, "step 1\n"))
    assert ranks == {name: int(name[-5]) for name in names}


def test_the_folders_of_runs_are_no_hosts(tmp_path: Path) -> None:
    files = {f"trial{n}/rank_{local}.log": "step 1\n" for n in range(2) for local in range(2)}
    assert list(made(tmp_path, files).values()) == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("hosts", "locals_of", "ranks"),
    [
        ((0, 1), (2, 2), [0, 1, 2, 3]),
        ((1, 2), (2, 2), [0, 1, 2, 3]),
        ((0, 2), (2, 2), [None] * 4),
        ((3, 4), (2, 2), [None] * 4),
        ((0, 1), (2, 1), [None] * 3),
    ],
)
def test_torchruns_folders_of_numbered_hosts_are_those_of_one_rank_after_another(
    hosts: tuple[int, int], locals_of: tuple[int, int], ranks: list[int | None], tmp_path: Path
) -> None:
    files = {
        f"logs/node{host}/attempt_0/{local}/stderr.log": "step 1\n"
        for host, count in zip(hosts, locals_of, strict=True)
        for local in range(count)
    }
    assert list(made(tmp_path, files).values()) == ranks


def test_numbered_hosts_of_two_jobs_do_not_count_on(tmp_path: Path) -> None:
    files = {f"{job}/node{host}/attempt_0/0/stderr.log": "step 1\n" for host, job in enumerate("ab")}
    assert list(made(tmp_path, files).values()) == [None, None]
