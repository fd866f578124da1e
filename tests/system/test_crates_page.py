"""The page of `fadelink build`."""

import json
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
from support.crate import Crate, hits_of
from support.netns import wait_for


@pytest.fixture
def browser(tmp_path):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1300,1300",
                 f"--user-data-dir={tmp_path}/chromium"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    yield driver
    driver.quit()


def test_page(build, browser, tmp_path):
    """Rates, hit maps, charge spectrum and differences of time, live, in a browser."""
    builder = build("--sources", "0xC0DA0001,0xC0DA0101", "--silence", 30)
    web = builder.web
    crates = [Crate(builder.port, 0xC0DA0001), Crate(builder.port, 0xC0DA0101)]
    browser.get(f"http://127.0.0.1:{web}/")
    text = lambda name: browser.find_element("id", name).text
    wait_for(lambda: text("state") == "waiting for data")
    row = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.innerText)"
    hits = {crate.source: 0 for crate in crates}
    for batch in range(3):
        for crate in crates:
            records = range(batch * 50, batch * 50 + 50)
            crate.send(*records)
            hits[crate.source] += sum(len(hits_of(crate.source, n)) for n in records)
        wait_for(lambda: text("events") == str((batch + 1) * 50))
        for source, count in hits.items():
            cells = browser.execute_script(row, f"#source-0x{source:08x} td")  # at once: the page makes them anew again and again
            assert cells[:2] == [f"0x{source:08x}", f"{count:,}"] and cells[3:] == [str((batch + 1) * 50), "0", "0"]
    wait_for(lambda: text("state").startswith("running for"))
    live = json.load(urllib.request.urlopen(f"http://127.0.0.1:{web}/live.json"))
    assert sum(live["charges"]) == sum(hits.values()) and sum(live["differences"]) > 0 and max(live["rates"]) > 0
    for source in hits:
        want = np.zeros((18, 16), int)
        for n in range(150):
            for slot, channel, _, _ in hits_of(source, n):
                want[slot - 3, channel] += 1
        assert live["maps"][f"0x{source & ~0xFF:08x}"] == want.tolist()
    want = np.zeros(128, int)
    for n in range(150):
        row = sorted((hit[2], source & ~0xFF, hit) for source in hits for hit in hits_of(source, n))
        for (tick, source, _), (next_tick, other, _) in zip(row, row[1:]):
            if next_tick - tick < 128 and source != other:
                want[next_tick - tick] += 1
    assert live["differences"] == want.tolist()
    # Each plot is a picture that the browser could draw.
    names = ["rates", "charge", "differences", *(f"map-0x{source & ~0xFF:08x}" for source in hits)]
    loaded = "const i = document.getElementById(arguments[0]); return i !== null && i.complete && i.naturalWidth > 0"
    wait_for(lambda: all(browser.execute_script(loaded, name) for name in names))
    browser.save_screenshot(str(tmp_path / "page.png"))
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    builder.popen.kill()
    wait_for(lambda: "no connection" in text("state"))
    assert text("events") == "150"


def test_page_of_a_plot_that_is_none(build):
    builder = build("--sources", "1")
    url = f"http://127.0.0.1:{builder.web}/plot/nothing.svg"
    wait_for(lambda: subprocess.run(["curl", "-s", "-o", "/dev/null", url]).returncode == 0)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(url)
    assert error.value.code == 404 and "expected rates, charge, differences" in error.value.read().decode()
