"""Tests of the Spark part."""
