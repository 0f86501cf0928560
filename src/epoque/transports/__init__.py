"""How do bytes travel between a descriptor and a protocol?"""
