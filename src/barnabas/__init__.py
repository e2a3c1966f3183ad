"""The streaming stack Python people can install."""
