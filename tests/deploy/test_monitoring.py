"""The board and the alerts ask for metrics, labels and values that a server really has, and all are documented."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.server.live import client_of, serving
from wellkept import Settings, Wellkept

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "wellkept.json").read_text(encoding="utf-8"))
ALERTS: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
USE = re.compile(r"\b(wellkept_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
OF_PROMETHEUS = {"instance", "job", "le"}
SUFFIXES = ("_bucket", "_count", "_sum")

Samples = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def samples() -> Samples:
    """The labels of each sample of a server that has answered one request."""
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept) as address:
        wellkept.agent("ann").remember("Prefers tabs")
        wellkept.maintain()
        with client_of(address) as client:
            return read_samples(client)


def read_samples(client: httpx2.Client) -> Samples:
    client.get("/health")
    found: Samples = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(dict(sample.labels))
    return found


def board_queries() -> Iterator[str]:
    yield from (target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", []))


def alert_rules() -> list[dict[str, Any]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def test_every_metric_and_label_that_is_asked_for_exists(samples: Samples) -> None:
    queries = [*board_queries(), *(rule["expr"] for rule in alert_rules())]
    asked = [(query, *use) for query in queries for use in USE.findall(query)]

    assert len(asked) > 40
    for query, metric, matchers in asked:
        assert metric in samples, query
        for label, operator, value in MATCHER.findall(matchers):
            if label in OF_PROMETHEUS or label == "status":
                continue
            values = {each.get(label) for each in samples[metric]}
            wanted = set(value.split("|")) if operator == "=~" else {value}
            assert wanted <= values, f"{query}: {label} has the values {values}"
    for query in queries:
        names = {label for metric, _ in USE.findall(query) for each in samples[metric] for label in each}
        grouped = {each.strip() for group in re.findall(r"by \(([^)]*)\)", query) for each in group.split(",")}
        assert grouped <= names | OF_PROMETHEUS, query


def test_every_metric_is_documented_and_every_documented_one_exists(samples: Samples) -> None:
    documented = dict(re.findall(r"^\| `(wellkept_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE))
    shown = {re.sub("(_bucket|_count|_sum)$", "", name) for name in samples if not name.endswith("_created")}

    assert set(documented) == shown
    for name, labels in documented.items():
        real = {label for full in (name, f"{name}_count") for each in samples.get(full, []) for label in each}
        assert set(re.findall(r"`(\w+)`", labels)) == real, name


def test_every_alert_is_explained() -> None:
    named = {rule["alert"] for rule in alert_rules()}

    assert named == set(re.findall(r"`(Wellkept[A-Z]\w+)`", PAGE.partition("## Alerts")[2].partition("\n## ")[0]))
    for rule in alert_rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_panels_have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_promtool_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    command = [promtool, "check", "rules", str(DEPLOY / "prometheus" / "alerts.yml")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def test_prometheus_reads_the_rules_with_a_key() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]

    assert config["rule_files"] == ["alerts.yml"]
    assert job["metrics_path"] == "/metrics"
    assert job["authorization"]["credentials_file"] == "/run/secrets/operator_key"


def test_the_key_that_prometheus_gets_reads_no_memory() -> None:
    """Whoever reads the configuration of Prometheus has its key."""
    assert PAGE.count("keys create --tenant monitoring --scope operator") == 1
    with Wellkept(":memory:", settings=Settings()) as wellkept, serving(wellkept, no_auth=False) as address:
        wellkept.agent("ann").remember("Prefers tabs")
        key = wellkept.tenant("monitoring").keys.create("operator").key
        with client_of(address, key=key) as client:
            assert client.get("/metrics").status_code == 200
            assert client.get("/api/agents").json()["items"] == []
            assert client.get("/api/agents/ann/memories").json()["items"] == []
