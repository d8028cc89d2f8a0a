/* A preloaded object with nothing in it: what any LD_PRELOAD costs. */
