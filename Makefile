# make demo    everything at once, to look at (a debug build: about three minutes on two cores the first time)
# make test    all tests; sets up the SDKs they drive (Python virtual environment, npm packages)
# make lint    rustfmt and clippy
# make flink   runs the known cases of json, csv and raw on real Flink (needs a JDK; fetches 230 MB the first time)
# make bench   speed, as ratios to a baseline measured in the same run

CARGO ?= cargo

.PHONY: demo test lint flink bench sdk

demo:
	$(CARGO) run --quiet -- --log warn demo

test: sdk
	$(CARGO) test --features failpoints

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets --features failpoints -- -D warnings
	$(CARGO) clippy -- -D warnings

flink:
	python3 tests/flink/check_cases.py

bench:
	$(CARGO) bench

# The official SDKs that drive the emulator in tests.
sdk:
	sh tests/sdk/setup.sh
