"""What is hidden and what must stay readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.io.redact import Redactor

HEX = "0123456789abcdef" * 2 + "01234567"
SECRETS = (
    ("open /home/mwinter/runs/a.log", "mwinter"),
    ("open /Users/mwinter/runs/a.log", "mwinter"),
    (r"open C:\Users\mwinter\runs\a.log", "mwinter"),
    ("read /export/home/mwinter/x", "mwinter"),
    ("read /scratch/users/mwinter/x", "mwinter"),
    ("mail to m.winter@lab.example.org now", "m.winter"),
    ("ssh mwinter@login7.cluster.example.edu", "mwinter"),
    ("ssh mwinter@login7.cluster.example.edu", "login7"),
    ('"username": "mwinter"', "mwinter"),
    ("USER=mwinter", "mwinter"),
    ("host=gpu-b12-04", "gpu-b12-04"),
    ('"hostname": "atlas"', "atlas"),
    ("SLURM_NODELIST=atlas[03-07]", "atlas"),
    ("MASTER_ADDR=atlas03", "atlas03"),
    ("connect to node0417:29500", "node0417"),
    ("ip-10-2-33-4 died", "10-2-33-4"),
    ("connect atlas03.hpc.example.edu failed", "atlas03"),
    ("connect to 10.21.3.44:29500", "10.21.3.44"),
    ("[10.21.3.44] said", "10.21.3.44"),
    ("addr fe80::1ff:fe23:4567:890a%eth0", "fe23"),
    ("addr [2001:db8::8a2e:370:7334]:80", "370:7334"),
    ("HF_TOKEN=hf_" + "a1B2" * 8, "a1B2"),
    ("export hf_" + "a1B2" * 8, "a1B2"),
    ("OPENAI sk-" + "a1B2" * 8, "a1B2"),
    ("push ghp_" + "a1B2" * 9, "a1B2"),
    ("github_pat_" + "a1B2" * 9, "a1B2"),
    ("glpat-" + "a1B2" * 5, "a1B2"),
    ("AKIA" + "ABCD1234" * 2, "ABCD1234"),
    ("WANDB_API_KEY=" + HEX, HEX),
    ("login with " + HEX, HEX),
    ("Authorization: Bearer abc.def-ghi_jkl", "abc.def"),
    ("Authorization: Basic bXdpbnRlcjpodW50ZXIy", "bXdpbnRlcjpodW50ZXIy"),
    ("password: hunter2hunter2", "hunter2"),
    ('{"api_key": "zzyyxxwwvv"}', "zzyyxxwwvv"),
    ("aws_secret_access_key = abcdEFGH1234/+xyz", "abcdEFGH1234"),
    ("git clone https://mwinter:hunter2@git.example.com/x", "hunter2"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
)
KEPT = (
    "step 412 | loss 2.3100 | grad_norm 1.05e+02 | lr 3.0e-04",
    "2026-01-02 03:04:05.678 [rank3] INFO saved checkpoint step_400",
    "2026-01-02T03:04:05Z epoch 3 12:34:56",
    "torch 2.4.1 CUDA 12.4 driver 550.54.15",
    "ProcessGroupNCCL.cpp:616 Watchdog caught collective operation timeout: WorkNCCL(SeqNum=982, OpType=ALLREDUCE)",
    "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 3 has a total capacity of 79.15 GiB",
    "logs/rank_3/stdout.log:1031",
    "forensics nan-origin runs/a --format json",
    "tokens_per_sec 41200 token_count=1024",
    "model.layers.3.mlp.gate_proj.weight nan",
    "node rank 3, host memory 512 GiB, worker 4 exited",
)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_planted_name_or_secret_is_gone(text: str, secret: str) -> None:
    assert secret not in Redactor().text(text)


@pytest.mark.parametrize("text", KEPT)
def test_what_tells_of_the_failure_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_the_same_name_gets_the_same_word_and_another_another() -> None:
    redactor = Redactor()
    first, second = redactor.text("host=atlas-a died"), redactor.text("host=atlas-b waits for 10.0.0.7")
    assert first == "host=<host-1> died"
    assert second == "host=<host-2> waits for <ip-1>"
    assert redactor.text("host=atlas-a") == "host=<host-1>"


def test_a_name_that_is_known_is_hidden_wherever_it_stands() -> None:
    redactor = Redactor(users=("mwinter",), hosts=("atlas",))
    assert redactor.text("runs/mwinter-sweep on atlas (rank 3)") == "runs/<user-1>-sweep on <host-1> (rank 3)"
    assert redactor.text("atlases and mwinters") == "atlases and mwinters"


def test_a_common_word_is_no_name() -> None:
    assert Redactor(users=("root", "run"), hosts=("localhost",)).text("run train as root") == "run train as root"


@given(st.text(max_size=200))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor()
    once = redactor.text(text)
    assert redactor.text(once) == once
