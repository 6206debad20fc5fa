"""The gate: rules of `[gate]` held against a run or a release, each answered with a sentence and its numbers.

`running.run_gate` reads record files, `judging.judge_gate` judges a dataset; nothing is imported here, since both need
the extra `gate`.
"""
