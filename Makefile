.PHONY: help test slow lint report

help: ## List the targets
	@sed -n 's/^\([a-z]*\): ## /\1\t/p' $(MAKEFILE_LIST)

test: ## Run the quick tests
	python -m pytest

slow: ## Run the slow tests
	python -m pytest -m slow

lint: ## Check style and types
	ruff check . && ruff format --check . && mypy --strict

report: ## Write the report to output/
	python -m montecarlo.report --output output
