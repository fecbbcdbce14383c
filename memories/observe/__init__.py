"""From a transcript to facts to memories: prepare, call, parse, classify, gate, match, store.

`pipeline` is the door: it takes the parts of transcripts through their stages. It knows no file: whoever calls it
hands over how the turns of a part are read.
"""
