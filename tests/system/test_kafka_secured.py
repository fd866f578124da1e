"""Brokers that let in who has a password, over TLS."""

import pytest
from support.broker import Broker
from support.kafka import Setup, check, send
from support.lab import fade
from support.netns import PATIENCE, sh, wait_for

USER, PASSWORD = "ann", "right-3f7a"


def properties(folder, broker, mechanism="PLAIN", password=PASSWORD, **more):
    """The file of a client."""
    settings = {"security.protocol": "SASL_SSL", "ssl.ca.location": broker.certificate, "sasl.mechanism": mechanism,
                "sasl.username": USER, "sasl.password": password} | more  # fmt: skip
    path = folder / f"{mechanism}-{password == PASSWORD}-{len(more)}.properties"
    path.write_text("# of the test\n" + "".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    broker = Broker(tmp_path_factory.mktemp("secured"), user=(USER, PASSWORD))
    yield broker
    broker.close()


@pytest.fixture
def setup(secured, request):
    setup = Setup(secured, request.node.name.replace("[", "-").replace("]", ""))
    yield setup
    setup.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_feed_and_build(setup, secured, tmp_path, mechanism):
    setup.kafka = ["--kafka", secured.secured, "--kafka-config-file", properties(tmp_path, secured, mechanism)]
    feeder = setup.feed("--streams", 3)
    send(setup, 40)
    assert setup.finish(feeder, stop=False)[0] == 0
    builder = setup.build()
    events = setup.read(setup.events, 40)
    wait_for(lambda: setup.places() == setup.ends())
    status, found, err = setup.finish(builder)
    assert (status, found["verdict"]) == (0, "complete"), (found, err)
    check(events, 40)


def test_who_is_not_let_in_is_told(setup, secured, tmp_path):
    """And the password is nowhere."""
    with_file = ["--kafka", secured.secured, "--kafka-config-file"]
    for kafka, told in (
        ([*with_file, properties(tmp_path, secured, password="wrong-81c2")], "Authentication failed"),
        ([*with_file, properties(tmp_path, secured, "SCRAM-SHA-512", password="wrong-81c2")], "uthentication failed"),
        ([*with_file, properties(tmp_path, secured, **{"ssl.ca.location": "/etc/ssl/certs"})], "certificate verify failed"),
        (["--kafka", secured.secured], "no broker answers"),
    ):
        setup.kafka = kafka
        out, err = setup.start("feed", "--tcp", 1).communicate(timeout=PATIENCE)
        assert told in err and err.count("\n") == 1 and "wrong-81c2" not in out + err, err


@pytest.mark.parametrize(
    "options,told",
    [
        (["--kafka-config", "acks=0"], "`acks`: expected a setting of the way to the brokers"),
        (["--kafka-config", "sasl.password=secret-55"], "`sasl.password`: expected it in a file"),
        (["--kafka-config", "security.protocol=secret-55"], "`security.protocol`: "),
        (["--kafka-config-file", "/nowhere"], "--kafka-config-file: /nowhere: No such file"),
    ],
)
def test_settings_that_cannot_be_set(setup, options, told):
    setup.kafka += options
    for command in (["feed", "--tcp", 1], ["build", "--window-ns", 4096]):
        process = setup.start(*command)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2 and told in err and "password=secret-55" not in err, err


def test_a_run_and_its_check(bench, lab):
    """By the file that the experiment names, which has no password itself."""
    sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
    broker = Broker(bench.tmp, within=["ip", "netns", "exec", bench.pc_ns], user=(USER, PASSWORD))
    try:
        path = properties(bench.tmp, broker)
        bench.sim()
        text = "stop.duration = 1\n" + fade("a", more=f'sinks = ["kafka:{broker.secured}/words"]')
        lab.write(f'kafka_config_file = "{path.name}"\n' + text)
        status, manifest, err = lab.run()
        assert (status, manifest["state"]) == (0, "complete"), err
        told = [file.read_text(errors="replace") for file in lab.folder().iterdir()]
        assert len(told) > 2 and not any(PASSWORD in text for text in told)
        status, out, _ = bench.run("check", lab.folder(), "--kafka-config-file", path)
        assert status == 0 and "complete, and as it was received" in out, out
        status, out, _ = bench.run("check", lab.folder(), "--kafka-config-file", properties(bench.tmp, broker, password="wrong-81c2"))
        assert status == 3 and "Authentication failed" in out and "wrong-81c2" not in out, out
        lab.write(text)
        status, _, err = lab.start().finish()
        assert status == 1 and "no broker answers" in err, err
    finally:
        broker.close()
