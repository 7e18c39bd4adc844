.PHONY: help test slow capture-tests lint report translations readme records baselines

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

test: ## Run the quick tests
	python -m pytest

slow: ## Run the slow tests
	python -m pytest -m slow

lint: ## Check style and types
	ruff check . && ruff format --check . && mypy --strict

capture-tests: ## Test capture on the torch and transformers that are installed
	MONTECARLO_REQUIRE_TORCH=1 python -m pytest -m "slow or not slow" tests/model/test_capture.py \
	    tests/model/test_watch.py tests/studies/test_watch_studies.py

report: ## Write the report to output/
	python -m montecarlo report --output output

translations: ## Bring the language catalogues up to date; fails if a translation lacks
	python -m montecarlo.report.language.messages

readme: report ## Make the README's figure and verdict table again
	python docs/make_readme.py output

records: ## Make the records and tables of long runs again (hours)
	for name in calibration training sensitivity z_counts papers exact_values explorer coverage \
	    stopping language_model; do python -m studies.$$name || exit; done

baselines: ## Draw the pictures that figures are compared with anew
	MONTECARLO_WRITE_BASELINES=1 python -m pytest tests/report/figures/test_baselines.py
