"""Tests of the offset stores."""
