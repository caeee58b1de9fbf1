"""The dashboard's frame: `streamlit run dashboard/app.py`."""

from pathlib import Path

import streamlit as st

from dashboard.components import escape
from dashboard.data import store_path
from dashboard.pages import pages
from toolkit.errors import ToolkitError
from toolkit.runs.reader import list_runs

HERE = Path(__file__).parent

# A picture of our own: Streamlit would fetch an emoji or a symbol for the tab from another host.
st.set_page_config(page_title="ELMo toolkit", page_icon=HERE / "icon.svg", layout="wide", initial_sidebar_state=240)
st.logo(str(HERE / "logo.svg"), icon_image=str(HERE / "icon.svg"), size="large")
st.html(HERE / "style.css")
page = st.navigation(pages())

with st.sidebar:
    try:
        store = store_path()
        number = len(list_runs(store))
        st.caption(f"{number} run{'' if number == 1 else 's'} in {escape(str(store))}")
    except ToolkitError as error:
        st.error(escape(str(error)), title="The settings cannot be read")
        st.stop()

try:
    page.run()
except ToolkitError as error:  # anything else is a defect and shows its traceback
    st.error(escape(str(error)), icon=":material/error:")
