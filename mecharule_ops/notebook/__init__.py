"""The library's front door for notebooks: a run as one object, with rows, pictures, HTML and a second run."""
