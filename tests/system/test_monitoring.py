"""Metrics, alert rules and dashboard, checked by the real Prometheus; health; the service manager's side of the programs."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest
import yaml
from support.broker import Broker
from support.lab import Lab, fade
from support.netns import BOARD, FEBS, PATIENCE, add_address, wait_for
from support.paths import BUILD, FADELINK, TOP

PROMETHEUS = BUILD / "prometheus/usr/bin/prometheus"
PROMTOOL = BUILD / "prometheus/usr/bin/promtool"
ALERTS = TOP / "monitoring/alerts.yml"


def declared():
    """The metrics of the program: {name: kind}."""
    source = (TOP / "host/cli/src/metrics.rs").read_text()
    return dict(re.findall(r'\(\s*"(fadelink_[a-z_]+)",\s*(Counter|Gauge),', source))


def panels():
    """The queries of the dashboard: {title: [query]}."""
    dashboard = json.loads((TOP / "monitoring/grafana.json").read_text())
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in dashboard["panels"]}


def names(text):
    return set(re.findall(r"\b(?:fadelink|process)_[a-z_]+\b", text))


def promtool(*words, text=None):
    found = subprocess.run([PROMTOOL, *map(str, words)], input=text, capture_output=True, text=True)
    assert found.returncode == 0 and not found.stderr.strip(), found.stdout + found.stderr
    return found.stdout


def get(bench, port, path):
    """What a server in the computer's namespace answers: status and text; status 0 before it listens."""

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    try:
        return bench.in_namespace(bench.pc_ns, ask)
    except ConnectionRefusedError:
        return 0, ""


def test_rules_and_names():
    """The rules are right by promtool and its tests, and name only metrics that there are, as the dashboard and the document do."""
    for words in (["check", "rules", ALERTS], ["test", "rules", TOP / "monitoring/alerts_test.yml"]):
        promtool(*words)
    promtool("check", "config", TOP / "monitoring/prometheus.yml")
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    tested = (TOP / "monitoring/alerts_test.yml").read_text()
    assert all(f'"{rule["alert"]}"' in tested.replace("{alertname=", "") for rule in rules)
    known = set(declared()) | {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    used = {name for rule in rules for name in names(rule["expr"])} | {name for exprs in panels().values() for name in names(" ".join(exprs))}
    assert len(known) > 40 and used <= known, used - known
    document = (TOP / "docs/monitoring.md").read_text()
    rows = dict(re.findall(r"^\| `(fadelink_[a-z_]+)` \|[^|]*\| (counter|gauge) \|", document, re.M))
    assert rows == {name: kind.lower() for name, kind in declared().items()}
    assert all(f"`{rule['alert']}`" in document for rule in rules)


class Watched:
    """A Prometheus in the computer's namespace."""

    def __init__(self, bench, ports):
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "fadelink", "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}],
        }
        path = bench.tmp / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        self.bench = bench
        self.process = bench.start(bench.pc_ns, PROMETHEUS, f"--config.file={path}", f"--storage.tsdb.path={bench.tmp / 'prometheus'}",
                                   "--web.listen-address=127.0.0.1:9090")  # fmt: skip

    def ask(self, expr):
        """The answer to a query: [(labels, value)]."""
        status, text = get(self.bench, 9090, "/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
        if status in (0, 503):
            return []  # it is not there yet, or reads what it has stored
        answer = json.loads(text)
        assert status == 200 and answer["status"] == "success", (expr, answer)
        return [(row["metric"], float(row["value"][1])) for row in answer["data"]["result"]]


def test_prometheus_sees_everything(bench):
    """A run with boards of every kind, a feed and a builder: each query of the dashboard has an answer, and no alert is on."""
    lab = Lab(bench)
    add_address(bench)
    broker = Broker(bench.tmp, within=["ip", "netns", "exec", bench.pc_ns])
    try:
        crates = ("--protocol", "fadc", "--small", "--phy", "gmii")
        sims = [
            bench.sim("--boards", 2, "--link", "loss=0.001"),
            bench.sim("--feb", FEBS[2], "--protocol", "tcp", "--gap", 100),
            bench.sim("--feb", FEBS[3], "--protocol", "udp", "--ip", "10.9.0.3", "--port", 10001, "--stopped", "--user-mhz", 2),
            bench.sim("--feb", "02:fa:de:00:00:05", *crates, "--ip", "10.9.0.4", "--port", 10002),
            bench.sim("--feb", "02:fa:de:00:00:06", *crates, "--ip", "10.9.0.5", "--port", 10003),
        ]
        lab.write(
            'http = "127.0.0.1:9777"\n' + fade("left") + fade("right", 1, 'sinks = ["file:r.dat", "share:r.socket,policy=drop"]')
            + f'[[tcp]]\nname = "sender"\naddress = "{BOARD}"\nport = 10000\n'
            '[[udp]]\nname = "stack"\naddress = "10.9.0.3"\nport = 10001\nverify = "counter"\n'
            '[[crates]]\nname = "events"\nport = 10002\nwindow_ns = 65536\nexpect = 1\nsinks = ["hdf5:{board}.h5"]\n'
        )  # fmt: skip
        run = lab.start()
        kafka = ("--kafka", broker.address, "--quiet")
        feed = bench.fadelink("feed", "--tcp", 10003, *kafka, "--metrics", "127.0.0.1:9778")
        build = bench.fadelink("build", *kafka, "--window-ns", 65536, "--expect", 1, "--metrics", "127.0.0.1:9779")
        watched = Watched(bench, [9777, 9778, 9779])
        left = {f"{title}: {expr}": expr for title, exprs in panels().items() for expr in exprs}
        queries = {title: expr.replace("$__rate_interval", "10s").replace("$instance", ".*") for title, expr in left.items()}

        def all_answer():
            for title in list(left):
                if watched.ask(queries[title]):
                    del left[title]
            return not left

        try:
            # On a busy machine all questions take a minute; those without an answer are asked again.
            wait_for(all_answer)
        except AssertionError:
            raise AssertionError(f"no answer: {sorted(left)}") from None
        boards = {"left", "right", "stack", "sender", "0xc0da0001"}
        # The data of a board may begin to come after that of others.
        wait_for(lambda: {labels["board"] for labels, value in watched.ask("sum by (board) (fadelink_received_bytes_total)") if value} == boards)
        assert {labels["command"] for labels, _ in watched.ask("fadelink_build_info")} == {"run", "feed", "build"}
        assert watched.ask('ALERTS{alertname!="FadelinkDataDropped", alertstate="firing"}') == []
        for port in (9777, 9778, 9779):
            status, text = get(bench, port, "/metrics")
            assert status == 200
            promtool("check", "metrics", text=text)
            assert {name for name in names(re.sub("^#.*", "", text, flags=re.M)) if name.startswith("fadelink")} <= set(declared())
            assert get(bench, port, "/health")[0] == 200, get(bench, port, "/health")
        run.signal(signal.SIGTERM)
        status, _, err = run.finish()
        assert status == 0, err
        # The brokers are away: feed and builder say so, also where they have nothing to deliver and to commit.
        for sim in sims:
            bench.end_sim(sim)
        broker.kill()
        for port in (9778, 9779):
            wait_for(lambda port=port: "Kafka: no broker answers" in get(bench, port, "/health")[1])
            assert get(bench, port, "/health")[0] == 503 and "\nfadelink_healthy 0\n" in get(bench, port, "/metrics")[1]
        broker.start()
        for port in (9778, 9779):
            wait_for(lambda port=port: get(bench, port, "/health")[0] == 200)
        for process in (feed, build):
            process.signal(signal.SIGTERM)
        for process in (feed, build):
            process.finish()
    finally:
        broker.close()


class Manager:
    """The socket of a service manager, and what a program has told it."""

    def __init__(self, path):
        self.path, self.heard = str(path), []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(PATIENCE)

    def environment(self):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": "2000000", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}

    def wait_for(self, text):
        while True:
            message = self.socket.recv(4096).decode()
            self.heard.append(message)
            if text in message:
                return message

    def count(self, text, seconds):
        """Messages with this text in a time."""
        end, found = time.monotonic() + seconds, 0
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                found += text in self.socket.recv(4096).decode()
            except TimeoutError:
                break
        self.socket.settimeout(PATIENCE)
        return found


@pytest.mark.parametrize("command", ["receive", "run", "build"])
def test_a_service_manager_is_told(bench, command):
    """Ready when the boards are received, alive while they are looked after, and silent when the program hangs."""
    add_address(bench)
    manager, lab = Manager(bench.tmp / "notify"), Lab(bench)
    bench.sim()
    lab.write('start = "command"\n' + fade("left"))
    words = {
        "receive": ["receive", "--iface", "eth0", "--feb", FEBS[0]],
        "run": ["run", lab.file],
        "build": ["build", "--tcp", 10002, "--window-ns", 65536, "--expect", 1],
    }[command]
    process = bench.start(bench.pc_ns, FADELINK, *words, "--quiet", env=manager.environment())
    manager.wait_for("READY=1")
    assert "all is well" in manager.wait_for("STATUS=")
    for _ in range(2):
        manager.wait_for("WATCHDOG=1")
    process.signal(signal.SIGSTOP)
    manager.count("WATCHDOG=1", 0.5)
    assert manager.count("WATCHDOG=1", 2) == 0
    process.signal(signal.SIGCONT)
    for _ in range(2):
        manager.wait_for("WATCHDOG=1")
    process.signal(signal.SIGTERM)
    process.finish()


def test_units():
    """The service manager's own check of the units finds nothing but that the program is not installed."""
    units = sorted((TOP / "packaging/systemd").glob("*.service"))
    assert [unit.name for unit in units] == [f"fadelink-{name}@.service" for name in ("build", "feed", "receive", "run")]
    for unit in units:
        text = unit.read_text()
        assert "Type=notify" in text and "WatchdogSec=" in text
        found = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
        problems = [line for line in found.stderr.splitlines() if "is not executable" not in line]
        assert problems == [], problems
