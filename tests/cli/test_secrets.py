"""A secret that stands in a run leaves by no command and in no format, whoever wrote it and however it is spelled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.formats.rows.secrets import masked, without_forms

from .conftest import Call

pytestmark = pytest.mark.usefixtures("read_once")
AWS_ID, AWS = "AKIA" + "QRSTUVWX23456789", "wJalrXUt9nFEMIxK7MDENGxbPxRfiCYqzzPLANTED"
HF, OPENAI, GITHUB = (
    "hf_" + "PlAnTeDqWeRtYuIoPaS",
    "sk-proj-" + "PlAnTeD0123456789abc",
    "ghp_" + "PlAnTeD0123456789abcdef",
)
WANDB = "9f8e7d6c5b4a39281706f5e4d3c2b1a0deadbeef"
SLACK, JWT = "xoxb-" + "1234567890-PlAnTeD", "eyJ" + "hbGciOiJQ.eyJPlAnTeDpZCI6.sIgNaTuRe"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEPlAnTeDkEyBoDy\nQUJDPlAnTeD\n-----END RSA PRIVATE KEY-----"
PLAIN, SHORT = "correct-horse-PlAnTeD", "pw7PlAnTeD"
#: What must not be seen, in parts, so that a secret that was cut or wrapped is found, too.
PLANTED = ("PlAnTeD", "PLANTED", WANDB[:12], AWS_ID[4:14], AWS[:12], "hbGciOiJQ")
NAMED = {
    "aws_access_key_id": AWS_ID, "aws_secret_access_key": AWS, "hub_token": HF, "openai_api_key": OPENAI,
    "github_token": GITHUB, "WANDB_API_KEY": WANDB, "slack_webhook_token": SLACK, "auth_token": JWT,
    "db_password": SHORT, "client_secret": PLAIN, "private_key": PEM,
}  # fmt: skip
URL = f"https://rowan:{SHORT}@store.example/bucket"
COMMAND = (
    f"python train.py --lr 0.001 --seed 3 --api_key {PLAIN} --hub-token={HF} --wandb_key {WANDB} --password '{SHORT}'"
    f" --data {URL} --openai_key {OPENAI} --note {GITHUB}"
)


def log(shift: float) -> str:
    namespace = ", ".join(f"{k}={v!r}" for k, v in {"lr": 0.001, **NAMED, "data_url": URL, "steps": 40}.items())
    lines = [
        f"+ {COMMAND}",
        f"Namespace({namespace})",
        "Training config:",
        *(f"  {key}: {value}" for key, value in NAMED.items() if "\n" not in value),
        f"wandb login {WANDB}",
        f"export AWS_SECRET_ACCESS_KEY={AWS} WANDB_API_KEY={WANDB}",
    ]
    lines += [f"step {n} loss {2.5 - n / 50 + shift:.4f} lr 0.001" for n in range(1, 30)]
    lines += [
        f"WARNING: retrying {URL} with Authorization: Bearer {PLAIN}",
        f"ERROR: 401 for token={GITHUB} and password: {SHORT} key {OPENAI}",
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        f"    api.login(api_key='{PLAIN}', url='{URL}')",
        f"RuntimeError: cannot log in with {HF}, api_key={PLAIN}, {JWT}, {SLACK}, {AWS_ID}",
    ]
    return "\n".join(lines) + "\n"


def planted(folder: Path, shift: float = 0.0) -> Path:
    nested = {
        "lr": 0.001 + shift,
        "seed": 3,
        "env": {**NAMED, "DATA_URL": URL},
        "credentials": {"one": PLAIN},
        "cmd": COMMAND,
    }
    yaml = "".join(
        f"{k}: {json.dumps(v)}\n" for k, v in {"lr": 0.001 + shift, **NAMED, "data_url": URL, "cmd": COMMAND}.items()
    )
    toml = f"lr = {0.001 + shift}\n[secrets]\nfirst = {json.dumps(PLAIN)}\n[login]\n" + "".join(
        f"{k} = {json.dumps(v)}\n" for k, v in NAMED.items()
    )
    wandb = "".join(
        f"{k}:\n  desc: null\n  value: {json.dumps(v)}\n" for k, v in {"lr": 0.001 + shift, **NAMED}.items()
    )
    results = {
        "results": {"reefs": {"acc,none": 0.6 - shift, "acc_stderr,none": 0.001, "alias": "reefs"}},
        "versions": {"reefs": 1}, "n-shot": {"reefs": 0}, "config": {
            "model": "hf", "model_args": f"pretrained=out,token={HF},api_key={PLAIN},base_url={URL}",
        },
    }  # fmt: skip
    files = {
        "train.log": log(shift), "conf/a.json": json.dumps(nested), "conf/config.yaml": yaml, "conf/b.toml": toml,
        "conf/.hydra/config.yaml": yaml, "wandb/run-1/files/config.yaml": wandb,
        "wandb/run-1/files/wandb-metadata.json": json.dumps(
            {"program": "train.py", "args": COMMAND.split()[2:], "git": {"remote": URL, "commit": "ab" * 20}}
        ),
        "requirements.txt": f"torch==2.6.0\ntool @ git+https://{GITHUB}@github.com/rowan/tool@{'cd' * 20}\n",
        "hparams.yaml": yaml, "launch.sh": f"#!/bin/bash\nexport HF_TOKEN={HF}\n{COMMAND}\n",
        "results_2033-01-02T03-04-05.json": json.dumps(results, indent=1),
        "mlruns/0/abc/params/hub_token": HF, "mlruns/0/abc/params/db_password": SHORT, "mlruns/0/abc/params/lr": "0.1",
        "mlruns/0/abc/meta.yaml": "run_id: abc\nstatus: FINISHED\n", "mlruns/0/abc/metrics/loss": "1 2.5 0\n2 2.4 1\n",
        "tokenizer_config.json": json.dumps({"eos_token": "</s>", "auth_token": JWT, "pad_token": "<pad>"}),
        "environment.txt": "".join(f"{k}={v}\n" for k, v in NAMED.items() if "\n" not in v),
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def leaks(text: str) -> list[str]:
    squeezed = "".join(text.split())
    return [word for word in PLANTED if word in squeezed]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no test changes."""
    return planted(tmp_path_factory.mktemp("planted") / "run")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another with other numbers and other secrets, which no test changes."""
    folder = planted(tmp_path_factory.mktemp("planted") / "other", 0.1)
    text = (folder / "conf/config.yaml").read_text(encoding="utf-8")
    (folder / "conf/config.yaml").write_text(text.replace("PlAnTeD", "otherPlAnTeD"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "junit", "html"])
def test_no_verdict_shows_a_secret(form: str, run: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "page"
    done = call("triage", run, "--format", form, "--verbose", "-o", out)
    text = out.read_text(encoding="utf-8")
    assert "cannot log in" in text.replace("\n", " ") or form in ("github", "junit")
    assert leaks(text + done.out + done.err) == []


@pytest.mark.parametrize("form", ["text", "markdown", "github", "junit", "json"])
def test_no_difference_shows_a_secret(form: str, run: Path, other: Path, call: Call) -> None:
    done = call("diff", run, other, "--format", form, "--verbose")
    assert leaks(done.out + done.err) == []


def test_no_verdict_beside_a_baseline_shows_a_secret(run: Path, other: Path, call: Call) -> None:
    done = call("triage", other, "--baseline", run, "--format", "json")
    assert leaks(done.out + done.err) == []


def test_no_table_holds_a_secret_not_even_on_disk(run: Path, tmp_path: Path, call: Call) -> None:
    place = tmp_path / "store"
    tables = call("query", run, "--store", place, "--format", "json").document["rows"]
    names = {str(row["table"]) for row in tables}
    assert {"facts", "events"} <= names
    for table in sorted(names):
        for form in ("json", "csv"):
            assert leaks(call("query", run, f"SELECT * FROM {table}", "--limit", "0", "--format", form).out) == [], (
                table
            )
    for part in place.rglob("*"):
        assert not part.is_file() or leaks(part.read_bytes().decode("latin-1")) == [], part


@pytest.mark.parametrize("target", ["csv", "jsonl", "parquet", "tensorboard"])
def test_no_export_holds_a_secret(target: str, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "exported"
    assert call("export", planted(tmp_path / "run"), "--to", target, "-o", out).code in (0, 4)
    for part in [out, *out.rglob("*")]:
        assert not part.is_file() or leaks(part.read_bytes().decode("latin-1")) == []


@pytest.mark.parametrize(
    "text",
    [
        f"--api_key {PLAIN}", f"--api-key={PLAIN}", f'["--api_key", "{PLAIN}"]', f"api_key: '{PLAIN}'",
        f"API_KEY={PLAIN}",
        f'{{"client_secret": "{PLAIN}"}}', f'{{\\"client_secret\\": \\"{PLAIN}\\"}}', f"password = {SHORT}",
        f"Bearer {PLAIN}", f"'auth_token': '{JWT}'", f"git clone https://{GITHUB}@host/x",
        f"ssh://rowan:{SHORT}@host", PEM,
        f"wandb login --relogin {WANDB}", f"wandb.login(key='{WANDB}')",
        f"machine api.wandb.ai login user password {WANDB}",
        f"AWS_SECRET_ACCESS_KEY={AWS}", f"aws_secret_access_key: {AWS}", f"token={GITHUB}", SLACK, JWT, AWS_ID,
        HF, OPENAI,
    ],
)  # fmt: skip
def test_a_secret_in_a_sentence_is_replaced(text: str) -> None:
    assert leaks(without_forms(f"before {text} after")) == []
    assert leaks(str(masked("note", text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "tokens per second: 51200", "eos_token: </s>", "pad_token_id=0", "max_tokens: 4096", "num_key_value_heads: 8",
        "KeyError: 'model.layers.0.weight'", "key: value", "tokenizer: gpt2", "--tokenizer meadow/pieces --key-dim 64",
        "special_tokens_map.json", "loss=2.31 | tok/s=51,200", "secret_sharing: false",
        "unexpected token: ',' in line 4",
        "consumed tokens: 123456789012", "key_padding_mask shape [4, 128]", "task-key embedding", "api_key=None",
        "password: null", "hf_transfer enabled", "risk-averse", "desk-lamp",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_forms(text) == text


@pytest.mark.parametrize(
    ("key", "value"), [("eos_token", "</s>"), ("max_tokens", 512), ("primary_key", "id"), ("lr", 0.1)]
)
def test_a_setting_with_such_a_name_stays(key: str, value: object) -> None:
    assert masked(key, value) == value


@pytest.mark.parametrize(
    "key", [*NAMED, "secrets.0", "credentials.user", "env/OPENAI_API_KEY", "a.b.passwd", "login.pwd"]
)
def test_what_stands_under_the_name_of_a_secret_is_hidden(key: str) -> None:
    assert masked(key, "anything") == "***"
