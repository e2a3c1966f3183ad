"""Types, errors, clock, settings and buffers that every other package builds on."""
