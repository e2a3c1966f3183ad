"""Record batches: format v2, the legacy message sets, compression and the compiled kernel."""
