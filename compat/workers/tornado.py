"""A plugin of pytest for tornado's suite: what its own runner sets up before the tests."""

import logging

logging.getLogger("tornado.access").setLevel(logging.CRITICAL)  # tests fail if anything unexpected is logged
