"""The suite's figures as pages to read: ``python -m benchmarks.report --help``.

`document`, `run` and `load_test` read what the runs wrote. `question_page`, `load_page` and `index` are the
pages; `ratio_chart`, `growth_chart` and `load_chart` draw the pictures on them. `site` is all of it together.
"""
