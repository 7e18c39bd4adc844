.PHONY: help test slow capture-tests trial ports remade lint report docs house translations readme \
    records baselines

CAPTURE_TESTS = tests/model/test_capture.py tests/model/test_follow.py \
    tests/model/test_reported.py tests/model/test_trial.py tests/model/test_unbroken.py tests/model/test_watch.py \
    tests/studies/test_watch_studies.py

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

test: ## Run the quick tests
	python -m pytest

slow: ## Run the slow tests
	python -m pytest -m slow

lint: ## Check style and types
	ruff check . && ruff format --check . && mypy --strict

capture-tests: ## Test capture on the torch and transformers that are installed
	MONTECARLO_REQUIRE_TORCH=1 python -m pytest -m "slow or not slow" $(CAPTURE_TESTS)

trial: ## Try some sixty architectures of transformers, right and with errors (two minutes)
	MONTECARLO_REQUIRE_TORCH=1 MONTECARLO_TRIAL=all python -m pytest -m slow tests/model/test_trial.py
ports: ## Try faults and sound pairs of ports at every size, format and evidence (an hour)
	MONTECARLO_TRIAL=all python -m pytest -m slow tests/model/test_comparing.py

remade: ## Make the confirming run, docs/papers.md and a part of the calibration again, and compare
	MONTECARLO_TRIAL=all python -m pytest -m slow tests/studies/test_confirm.py \
	    tests/studies/test_papers.py tests/studies/test_calibration.py

report: ## Write the report to output/
	python -m montecarlo report --output output

docs: | output/run.json ## Build the site into build/site, with the report in output/ (pip install -e ".[documents]")
	python -m mkdocs build --strict

output/run.json:
	$(MAKE) report

house: ## Draw the picture of the rooms in CONTRIBUTING.md again
	python docs/make_house.py

translations: ## Bring the language catalogues up to date; fails if a translation lacks
	python -m montecarlo.report.language.messages

readme: report ## Make what README and docs quote of a report again
	python docs/make_readme.py output

records: ## Make the records and tables of long runs again (hours)
	for name in calibration training papers practice exact_values quantiles explorer \
	    language_model; do python -m studies.$$name || exit; done

baselines: ## Draw the pictures that figures are compared with anew
	MONTECARLO_WRITE_BASELINES=1 python -m pytest -n 0 tests/report/figures/test_baselines.py
