"""Tests of barnabas.records."""
