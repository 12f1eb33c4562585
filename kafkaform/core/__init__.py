"""In: nothing. Out: the nouns that all layers share, as frozen data.

Must not know: files, networks, clocks, terminals, or any word that belongs to Kafka alone.
"""
