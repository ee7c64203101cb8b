# make demo      everything at once, to look at (a debug build: about five minutes on two cores the first time)
# make test      all tests; sets up the SDKs they drive (Python virtual environment, npm packages), RocketMQ, and the jars
#                of Flink (needs a JDK; fetches 350 MB the first time)
# make rocketmq  the real servers of RocketMQ for the tests, by Maven (needs a JDK; fetches 120 MB the first time)
# make lint      rustfmt and clippy
# make flink     runs the known cases of json, csv, raw, avro and SQL on real Flink (needs a JDK; fetches 230 MB the first time)
# make bench     speed, as ratios to a baseline measured in the same run

CARGO ?= cargo

.PHONY: demo test lint flink bench sdk rocketmq

demo:
	$(CARGO) run --quiet -- --log warn demo

# Without Java the tests that need RocketMQ's servers or Flink's planner are skipped and listed at the end; in CI they fail.
test: sdk
	sh tests/rocketmq/setup.sh || test -z "$$CI"
	python3 tests/flink/check_plans.py --prepare || test -z "$$CI"
	@rm -f target/skipped
	$(CARGO) test --features failpoints
	@! test -e target/skipped || cat target/skipped

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets --features failpoints -- -D warnings
	$(CARGO) clippy -- -D warnings
	$(CARGO) clippy --all-targets --no-default-features --features failpoints -- -D warnings

flink:
	python3 tests/flink/check_cases.py
	python3 tests/flink/check_inserts.py
	python3 tests/flink/check_avro.py

bench: rocketmq
	$(CARGO) bench

# The official SDKs that drive the emulator in tests.
sdk:
	sh tests/sdk/setup.sh

# The servers of RocketMQ 4.9 and 5.x and their official clients.
rocketmq:
	sh tests/rocketmq/setup.sh
