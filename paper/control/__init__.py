"""Controlled training: logs, summaries, timings, faulty controllers and figures of both studies."""
