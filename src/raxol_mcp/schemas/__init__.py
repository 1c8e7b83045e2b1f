"""JSON Schemas that somebody wrote: which are taken, what fits, and words for what does not.

Below server and client, which both meet schemas of strangers. Loaded when the first is met.

* `admission`: which schemas are taken at all, before a validator sees them
* `json_schema`: the validator
* `problems`: what is wrong with a value, in one sentence
"""
