"""One partition as its leader or follower sees it: end offsets, high watermark, in-sync replicas, epochs."""
