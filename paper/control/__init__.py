"""Controlled training: logs, summaries, costs and figures of both studies."""
