"""The comparison anyone can rerun: how long does an operation take on each event loop?"""
